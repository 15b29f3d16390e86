/**
 * Every command with `--json`: one JSON value on standard output, or none where it fails, and objects in lines beside it.
 *
 * The list is the program's own: a command that has no row here fails the story.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { newStory } from "../../server/testing/platform.ts"
import { tropism } from "../src/command-line.ts"
import { commandsOf } from "../testing/commands.ts"
import { invokeWith } from "../testing/invoke.ts"

const id = "00000000-0000-7000-8000-000000000001"

/** What is typed behind each command; a group of commands does nothing by itself. */
const rows: Readonly<Record<string, ReadonlyArray<string> | "group">> = {
  start: [],
  demo: [],
  migrate: [],
  doctor: [],
  link: [],
  members: [],
  "members add": ["ada", "--role", "editor"],
  "members change": ["ada", "--role", "reviewer"],
  "members remove": ["nobody"],
  "members invite": ["ada"],
  token: [],
  "token create": ["walk"],
  "token revoke": [id],
  projects: [],
  "projects create": ["Another"],
  "projects rename": ["Shop"],
  import: ["/nowhere.jsonl"],
  export: ["-o", "/dev/null/none"],
  dump: ["-o", "/dev/null/none"],
  restore: ["/nowhere.dump"],
  tail: ["--after", "0"],
  why: ["one.text"],
  verify: [],
  agents: [],
  "agents apply": ["-f", "/nowhere"],
  "agents export": [],
  "agents versions": ["agent-of-talk"],
  "agents diff": ["agent-of-talk"],
  "agents restore": ["agent-of-talk", "1"],
  "agents schedule": ["agent-of-talk"],
  "agents enable": ["agent-of-talk"],
  "agents disable": ["TodoAssistant"],
  run: ["agent-of-talk"],
  runs: [],
  "runs show": [id],
  "runs cancel": [id],
  "runs resume": [id],
  backtest: ["TodoAssistant"],
  backtests: "group",
  "backtests list": ["agent-of-talk"],
  "backtests show": ["agent-of-talk", id],
  "backtests results": ["agent-of-talk", id],
  "backtests compare": ["agent-of-talk"],
  "backtests cancel": ["agent-of-talk", id],
  chat: ["nobody", "-m", "Hello"],
  conversations: [],
  "conversations show": [id],
  "conversations rename": [id, "Title"],
  "conversations delete": [id],
  "conversations export": [id],
  contexts: [],
  "contexts show": ["talk"],
  "contexts log": ["talk"],
  "contexts tail": ["nobody"],
  "contexts fork": ["talk", "fork"],
  "contexts interrupt": ["nobody"],
  "contexts define-tool": ["talk", "pick_colour"],
  "contexts answer-tool": ["talk", "no-call", "--result", "1"],
  "contexts replay": ["talk"],
  "contexts compare": ["nobody", "Q", "--variant", "a", "--variant", "b"],
  "contexts comparison": ["talk", "1-00000000"],
  webhooks: "group",
  "webhooks list": ["agent-of-talk"],
  "webhooks create": ["agent-of-talk"],
  "webhooks rotate": ["agent-of-talk", id],
  "webhooks revoke": ["agent-of-talk", id],
  "mcp-servers": "group",
  "mcp-servers list": [],
  "mcp-servers show": ["nobody"],
  "mcp-servers add": ["here", "-a", "http://127.0.0.1:1/mcp"],
  "mcp-servers refresh": ["nobody"],
  "mcp-servers set": ["nobody"],
  "mcp-servers sign-in": ["nobody"],
  "mcp-servers sign-out": ["nobody"],
  "mcp-servers remove": ["nobody"],
  explain: [id],
  chain: [id],
  "kill-switch": [],
  "kill-switch on": ["--reason", "a walk"],
  "kill-switch off": [],
  tasks: [],
  "tasks show": ["1"],
  "tasks approve": ["1"],
  "tasks reject": ["1"],
  "tasks answer": ["1", "yes"],
  "tasks rerun": ["1"],
  "tasks assign": ["1", "ada"],
  "tasks add": ["Buy milk"],
  "tasks complete": ["t1"],
  "tasks edit": ["t1", "--title", "Buy more milk"],
  "tasks delete": ["t1"],
  undo: "group",
  "undo run": [id],
  "undo chain": [id],
  "undo agent": ["agent-of-talk", "1"],
  denials: [],
  autonomy: ["agent-of-talk"]
}

/** Commands that no story in one process starts, or that go on for ever. */
const endless = new Set(["start", "demo", "migrate", "doctor", "tail", "contexts tail"])

const errorOf = (text: string) => JSON.parse(text).error

describe("Requirement: every command speaks JSON", () => {
  it("the list here is the program's", () => {
    expect(Object.keys(rows)).toEqual(commandsOf(tropism).map(({ path }) => path.join(" ")))
  })

  it.live("a wrong invocation and a failure are one object on standard error, and nothing is printed", () =>
    Effect.gen(function* () {
      for (const [name, more] of Object.entries(rows)) {
        const path = name.split(" ")
        const wrong = yield* invokeWith({}, ...path, "--json", "--nope")
        expect([name, wrong.exitCode, wrong.out, errorOf(wrong.error).exitCode]).toEqual([name, 2, [], 2])
        if (more === "group") continue
        const failed = yield* invokeWith(
          { PORT: "none", TROPISM_DATA: "/nowhere" },
          ...path,
          ...more,
          "--json"
        )
        expect([name, failed.out]).toEqual([name, []])
        expect([name, failed.exitCode, errorOf(failed.error).exitCode]).toEqual([name, 1, 1])
        expect(errorOf(failed.error).message).not.toBe("")
      }
    })
  )

  it.live("on a server each prints one value, and what is refused has the server's problem", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      yield* newContext(story, "talk")
      let refused = 0
      for (const [name, more] of Object.entries(rows)) {
        if (more === "group" || endless.has(name)) continue
        const { error, exitCode, out } = yield* invokeWith(
          { TROPISM_TOKEN: story.token },
          ...name.split(" "),
          "--json",
          "--url",
          story.url,
          "--project",
          story.projectId,
          ...more
        )
        const said = `${name}: ${out.join("\n")} ${error}`
        if (exitCode === 0) {
          expect([said, typeof JSON.parse(out.join("\n"))]).toEqual([said, "object"])
          expect([said, error]).toEqual([said, ""])
        } else {
          if (out.length > 0) JSON.parse(out.join("\n"))
          expect([said, errorOf(error).exitCode]).toEqual([said, exitCode])
          if (errorOf(error).problem !== undefined) {
            expect(errorOf(error).problem).toMatchObject({
              status: expect.any(Number),
              title: expect.any(String)
            })
            refused += 1
          }
        }
      }
      expect(refused).toBeGreaterThan(5)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

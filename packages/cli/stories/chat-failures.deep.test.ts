/**
 * What `tropism chat` says of a turn that failed: the sentence that every door tells, and where to look for more.
 */
import { tmpdir } from "node:os"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { defineWorkflow } from "../../server/testing/define-words.ts"
import { holding, lockOf } from "../../server/testing/owner-rows.ts"
import { asking, askingModel } from "../../server/testing/question-words.ts"
import { eventually, newStory, scripted } from "../../server/testing/platform.ts"
import { invokeWith, until } from "../testing/invoke.ts"
import { childrenOf, launch, launcher } from "../testing/launch.ts"
import { onTerminal } from "../testing/terminal-process.ts"

const missingTask = [
  { when: "step == 0", calls: [{ tool: "complete_task", arguments: { task_id: 999 } }] },
  { say: "Half a", fault: { kind: "cut" } }
]

/** More runs of an agent than one page of them has. */
const elsewhere = Array.from({ length: 55 }, (_, index) => index)

/** More characters than any prompt may have. */
const endless =
  "{% assign text = '0123456789' %}{% for n in (1..16) %}{% assign text = text | append: text %}{% endfor %}{{ text }}"

describe("Requirement: a person is told what to do, and not what broke", () => {
  it.live("S003-R50 the command line tells a failed turn as the chat does, once or at a terminal", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const environment = { TROPISM_TOKEN: story.token }
      yield* newContext(story, "todos", scripted(missingTask), { tools: ["tasks.*"] })
      const { items } = yield* story.get("/agents")
      const { id: agentId } = items.find(({ name }: { name: string }) => name === "agent-of-todos")

      const door = yield* story.post("/chat", { agentId, message: "Number 999 is done" })
      expect(door).toMatchObject({ status: "failed", response: expect.stringMatching(/#999.*\n\n\S/) })

      const once = yield* invokeWith(environment, "chat", "todos", "-m", "It is done", "--url", story.url)
      expect(once).toEqual({
        exitCode: 1,
        out: [],
        error: expect.stringContaining('"tropism contexts log todos"')
      })
      expect(once.error.startsWith(door.response.replace("\n\n", " "))).toBe(true)
      const log = yield* invokeWith(environment, "contexts", "log", "todos", "--url", story.url)
      expect(log.out.join("\n")).toContain("AgentTurnFailed")

      const typed = yield* onTerminal(["chat", "todos", "--url", story.url], environment)
      yield* typed.sees("Ctrl-D")
      yield* typed.press("Is it done?\r")
      for (const sentence of door.response.split("\n\n")) yield* typed.sees(sentence)
      yield* typed.press("/exit\r")
      expect(yield* typed.exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("a run that fails before its first word is told in the same way", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const environment = { TROPISM_TOKEN: story.token }
      yield* newContext(story, "talk")
      const steps = [{ name: "only", prompt: endless }]
      expect((yield* defineWorkflow(story, "talk", { flowType: "sequential", steps })).status).toBe(204)
      const once = yield* invokeWith(environment, "chat", "talk", "-m", "Hello", "--url", story.url)
      expect(once).toEqual({
        exitCode: 1,
        out: [],
        error: expect.stringContaining(' "tropism contexts log talk"')
      })
      const [sentence = ""] = once.error.split(' "tropism contexts log talk"')
      const log = yield* invokeWith(environment, "contexts", "log", "talk", "--url", story.url)
      expect(log.out.join("\n")).toContain("AgentTurnFailed")
      const typed = yield* onTerminal(["chat", "talk", "--url", story.url], environment)
      yield* typed.sees("Ctrl-D")
      yield* typed.press("Hello again\r")
      yield* typed.sees(sentence)
      yield* typed.press("/exit\r")
      expect(yield* typed.exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("a run that is cancelled before its first word is told as that, whatever else its agent does", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const agent = yield* newContext(story, "talk")
      const at = ["--url", story.url]
      const environment = { TROPISM_TOKEN: story.token }
      // No worker takes its run meanwhile.
      const claims = yield* holding(story.access, lockOf("claims"))
      const speaking = yield* launch(launcher, ["chat", "talk", "-m", "Hello", ...at], environment)
      const { items } = yield* eventually(story.get("/runs?status=queued"), ({ items }) => items.length === 1)
      const [program = 0] = childrenOf(speaking.process.pid ?? 0)
      process.kill(program, "SIGSTOP")
      yield* story.post(`/runs/${items[0].id}/cancel`)
      yield* claims.query("commit")
      yield* Effect.forEach(elsewhere, () => story.post(`/agents/${agent.id}/trigger?wait=false`))
      process.kill(program, "SIGCONT")
      yield* until(() => speaking.code() !== undefined)
      expect([speaking.code(), speaking.out(), speaking.error()]).toEqual([
        1,
        "",
        expect.stringMatching(`^tropism: [^\\n]*"tropism runs show ${items[0].id}"[^\\n]*\\n$`)
      ])
      const again = yield* invokeWith(environment, "chat", "talk", "-m", "Again", ...at)
      expect(again).toMatchObject({ exitCode: 0, error: "" })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("an answer that is awaited is given, however many runs of the agent wait elsewhere", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const model = askingModel(asking("Which one?"))
      const agent = yield* newContext(story, "desk", model, { tools: ["run.ask_user"] })
      const chat = (message: string) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "chat", "desk", "-m", message, "--url", story.url)
      expect(yield* chat("Hello")).toMatchObject({ exitCode: 3 })
      yield* Effect.forEach(elsewhere, () => story.post(`/agents/${agent.id}/trigger?wait=false`))
      yield* eventually(
        story.get("/tasks?type=question&limit=200"),
        ({ items }) => items.length > elsewhere.length
      )
      expect(yield* chat("This one")).toEqual({
        exitCode: 0,
        out: [expect.stringContaining("This one")],
        error: ""
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("a script that cannot be read is refused before anything is made", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      for (const path of [tmpdir(), "/nowhere/script.jsonl"]) {
        const at = ["--url", story.url]
        const refused = yield* invokeWith({ TROPISM_TOKEN: story.token }, "chat", "--script", path, ...at)
        expect(refused).toEqual({ exitCode: 2, out: [], error: expect.stringContaining(path) })
      }
      for (const made of ["conversations", "contexts"])
        expect((yield* story.get(`/${made}`)).items).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

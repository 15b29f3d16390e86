/**
 * `tropism chat` on a real server: asked once, piped, scripted, and typed at a terminal.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  contentsOf,
  countOf,
  logOf,
  logWith,
  newContext,
  quietLog,
  typesOf
} from "../../server/testing/context-words.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { asking, askingModel } from "../../server/testing/question-words.ts"
import { type Json, newProject, scripted, startServer } from "../../server/testing/platform.ts"
import { invokeWith, until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { onTerminal } from "../testing/terminal-process.ts"

/** A server with an agent that is spoken with in `talk`, and the ways to start the command. */
const scene = (model?: Json, overrides: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    const story = yield* newProject(yield* startServer(access), access)
    yield* newContext(story, "talk", model, overrides)
    const environment = { TROPISM_TOKEN: story.token }
    const at = ["--url", story.url]
    return {
      story,
      chat: (...args: ReadonlyArray<string>) => invokeWith(environment, "chat", ...args, ...at),
      /** As a process of its own, with this as its input. */
      piped: Effect.fnUntraced(function* (input: string | undefined, ...args: ReadonlyArray<string>) {
        const process = yield* launch(launcher, ["chat", ...args, ...at], environment)
        if (input !== undefined) process.process.stdin?.end(input)
        return process
      }),
      typed: (...args: ReadonlyArray<string>) => onTerminal(["chat", ...args, ...at], environment)
    }
  }).pipe(Effect.provide(NodeServices.layer))

const scriptOf = (...events: ReadonlyArray<Json>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "tropism-chat-"))
      const path = join(folder, "script.jsonl")
      writeFileSync(path, events.map((event) => JSON.stringify(event)).join("\n"))
      return { folder, path }
    }),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ).pipe(Effect.map(({ path }) => path))

const endless = scripted([{ say: "Never {{ message }}", latencyMs: 600_000 }])

/** An agent that lets a person choose, and then says what was chosen. */
const choosing = [askingModel(asking("Which one?", ["this", "that"])), { tools: ["run.ask_user"] }] as const

describe("tropism chat", () => {
  it.live("asks once, prints the answer and ends; a new conversation is made where none is named", () =>
    Effect.gen(function* () {
      const { chat, story } = yield* scene()
      expect(yield* chat("talk", "-m", "Hello")).toEqual({ exitCode: 0, out: ["Answer 1: Hello"], error: "" })
      expect((yield* chat("talk", "-m", "Again")).out).toEqual(["Answer 2: Again"])
      const made = yield* chat("--agent", "agent-of-talk", "-m", "Anew")
      expect(made.out).toEqual(["Answer 1: Anew"])
      const [newest] = (yield* story.get("/contexts")).items
      expect(newest.name).toMatch(/^chat-agent-of-talk-\d{17}$/)
      yield* story.patch(`/agents/${newest.agentId}`, { enabled: false })
      const disabled = yield* chat("talk", "-m", "Hello")
      expect(disabled).toMatchObject({ exitCode: 1, out: [] })
      expect(disabled.error).toContain("agent-of-talk")
    })
  )

  it.live(
    "a conversation that it begins is told on standard error, and in the field agentName of each event",
    () =>
      Effect.gen(function* () {
        const { chat, piped, story } = yield* scene()
        const asked = yield* piped(undefined, "--agent", "agent-of-talk", "-m", "One")
        yield* until(() => asked.code() !== undefined)
        expect([asked.code(), asked.out()]).toEqual([0, "Answer 1: One\n"])
        const [, name = ""] = /^[^\n]*\btropism chat (\S+)\n$/.exec(asked.error()) ?? []
        expect((yield* chat(name, "-m", "Two")).out).toEqual(["Answer 2: Two"])
        const kept = yield* chat("--agent", "agent-of-talk", "-m", "Three", "--json")
        const events = kept.out.map((line): Json => JSON.parse(line))
        const [begun] = new Set(events.map(({ agentName }) => agentName))
        expect(JSON.parse(kept.error)).toEqual({
          notice: expect.stringMatching(`\\btropism chat ${begun}$`)
        })
        expect(events).toEqual(yield* quietLog(story, begun))
        expect((yield* chat(begun, "-m", "Four")).out).toEqual(["Answer 2: Four"])
      })
  )

  it.live("S003-R09 tropism agents lists TodoAssistant with the model and the mode of its definition", () =>
    Effect.gen(function* () {
      const { story } = yield* scene()
      const agents = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "agents", ...args, "--url", story.url)
      const { exitCode, out } = yield* agents()
      expect(exitCode).toBe(0)
      const lines = out.join("\n").split("\n")
      expect(lines[0]?.trim().split(/ {2,}/)).toEqual([
        "AGENT",
        "VERSION",
        "MODE",
        "TRIGGER",
        "MODEL",
        "STATE",
        "AGE"
      ])
      const cells = lines
        .find((line) => line.includes("TodoAssistant"))
        ?.trim()
        .split(/ {2,}/)
      expect(cells?.slice(0, 6)).toEqual([
        "TodoAssistant",
        "1",
        "suggest",
        "manual",
        "openai:gpt-4o",
        "enabled"
      ])
      const printed: Json = JSON.parse((yield* agents("--json")).out.join("\n"))
      const records: ReadonlyArray<Json> = printed.items ?? printed
      expect(records.find(({ name }) => name === "TodoAssistant")).toMatchObject({
        model: { provider: "openai", name: "gpt-4o" },
        tools: expect.arrayContaining(["tasks.add_task", "tasks.list_tasks"])
      })
    })
  )

  it.live("speaks with TodoAssistant where nobody is named, in a conversation of one's own", () =>
    Effect.gen(function* () {
      const { chat, story } = yield* scene()
      const { items: seeded } = yield* story.get("/agents")
      for (const { id, name } of seeded) if (name === "TodoAssistant") yield* story.delete(`/agents/${id}`)
      const nobody = yield* chat("-m", "Who?")
      expect([nobody.exitCode, nobody.error]).toEqual([1, expect.stringMatching(/--agent\b.*TodoAssistant/)])
      yield* story.post("/agents", {
        name: "TodoAssistant",
        prompt: "Answer.",
        triggerType: "manual",
        model: scripted([{ say: "You said: {{ message }}" }])
      })
      expect((yield* chat("-m", "Hello")).out).toEqual(["You said: Hello"])
      const { items } = yield* story.get("/conversations")
      expect(items).toMatchObject([{ title: "Hello" }])
      expect(yield* story.get(`/contexts/${items[0].contextName}`)).toMatchObject({ owner: "admin" })
      expect((yield* chat(items[0].contextName, "-m", "Again")).out).toEqual(["You said: Again"])
    })
  )

  it.live("ends with 1 where the turn failed, and with 3 where the agent waits for a person", () =>
    Effect.gen(function* () {
      const { chat, story } = yield* scene(scripted([{ say: "Half an ans", fault: { kind: "cut" } }]))
      const failed = yield* chat("talk", "-m", "Hello")
      expect(failed).toMatchObject({ exitCode: 1, out: [] })
      expect(failed.error).toContain('"tropism contexts log talk"')
      yield* newContext(
        story,
        "limited",
        scripted([{ calls: [{ tool: "search_objects", arguments: {} }] }]),
        {
          maxSteps: 1
        }
      )
      expect(yield* chat("limited", "-m", "Hello")).toMatchObject({
        exitCode: 3,
        error: expect.stringContaining("stepLimit")
      })
      yield* newContext(story, "asker", askingModel(asking("Which one?")), { tools: ["run.ask_user"] })
      const asked = yield* chat("asker", "-m", "Hello")
      expect(asked).toMatchObject({ exitCode: 3 })
      expect(asked.error).toContain("Which one?")
    })
  )

  it.live(
    "adds the events of a script and prints the log as it is kept, with pieces where they are wanted",
    () =>
      Effect.gen(function* () {
        const { chat, story } = yield* scene()
        const path = yield* scriptOf(
          { type: "SystemPromptEvent", content: "Be brief." },
          { type: "UserMessageEvent", content: "One", triggersAgentTurn: false },
          { type: "UserMessageEvent", content: "Two" },
          { type: "UserMessageEvent", content: "Three" }
        )
        const { exitCode, out } = yield* chat("talk", "--script", path, "--json", "--deltas")
        expect(exitCode).toBe(0)
        const events = out.map((line): Json => JSON.parse(line))
        const log = yield* quietLog(story, "talk")
        expect(events.filter(({ type }) => type !== "TextDeltaEvent")).toEqual(log)
        expect(events.filter(({ type }) => type === "TextDeltaEvent")).not.toEqual([])
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 2: Two", "Answer 3: Three"])
        const wrong = yield* scriptOf({ type: "UserMessageEvent", content: "Four" }, { type: "Nothing" })
        const refused = yield* chat("talk", "--script", wrong)
        expect(refused).toMatchObject({ exitCode: 1, out: ["Answer 4: Four"] })
        expect(refused.error).toMatch(/\b2\b.*: type: /)
      })
  )

  it.live("takes all of its input as one message, or each line as one", () =>
    Effect.gen(function* () {
      const { piped } = yield* scene()
      const whole = yield* piped("One\nTwo\n", "talk")
      yield* until(() => whole.code() !== undefined)
      expect([whole.code(), whole.out(), whole.error()]).toEqual([0, "Answer 1: One\nTwo\n", ""])
      const lines = yield* piped("One\n\nTwo\n", "talk", "--lines")
      yield* until(() => lines.code() !== undefined)
      expect([lines.code(), lines.out()]).toEqual([0, "Answer 2: One\nAnswer 3: Two\n"])
    })
  )

  it.live("a signal ends the turn, and with it a command that has nothing more to say", () =>
    Effect.gen(function* () {
      const { piped, story } = yield* scene(endless)
      const asking = yield* piped(undefined, "talk", "-m", "Hello")
      yield* logWith(story, "talk", "AgentTurnStartedEvent")
      asking.process.kill("SIGINT")
      yield* until(() => asking.code() !== undefined)
      expect(asking.code()).toBe(130)
      const log = yield* quietLog(story, "talk")
      expect(log.find(({ type }) => type === "AgentTurnInterruptedEvent")).toMatchObject({ reason: "user" })
    })
  )

  it.live("at a terminal, Ctrl-C interrupts the turn and not the program, and the next leaves with 130", () =>
    Effect.gen(function* () {
      const model = scripted([
        { when: 'message == "wait"', say: "Never", latencyMs: 600_000 },
        { say: "Heard {{ message }}" }
      ])
      const { story, typed } = yield* scene(model)
      const { exitCode, press, sees } = yield* typed("talk")
      yield* sees("agent-of-talk")
      yield* sees("> ")
      yield* press("one\r")
      yield* sees("Heard one")
      yield* sees("> ")
      yield* press("wait\r")
      yield* logWith(story, "talk", "AgentTurnStartedEvent", 2)
      yield* press("\u0003")
      yield* logWith(story, "talk", "AgentTurnInterruptedEvent")
      yield* sees("> ")
      yield* press("/state\r")
      yield* sees("talk: ")
      yield* press("three\r")
      yield* sees("Heard three")
      yield* sees("> ")
      yield* press("\u0003")
      expect(yield* exitCode).toBe(130)
      const log = yield* quietLog(story, "talk")
      expect(countOf(log, "AgentTurnCompletedEvent")).toBe(2)
      expect(countOf(log, "AgentTurnInterruptedEvent")).toBe(1)
    })
  )

  it.live(
    "at a terminal, a question is shown with its options and the next line answers it; Ctrl-D leaves",
    () =>
      Effect.gen(function* () {
        const { story, typed } = yield* scene(askingModel(asking("Which one?", ["this", "that"])), {
          tools: ["run.ask_user"]
        })
        const { exitCode, press, sees } = yield* typed("talk")
        yield* sees("> ")
        yield* press("go\r")
        yield* sees("? Which one?")
        yield* sees("- that")
        yield* sees("> ")
        yield* press("that\r")
        yield* sees('"answer":"that"')
        yield* sees("> ")
        yield* press("\u0004")
        expect(yield* exitCode).toBe(0)
        expect(typesOf(yield* logOf(story, "talk"))).toContain("ToolCallCompletedEvent")
      })
  )

  it.live("at a terminal, an answer that is none of the options is refused, and the next line answers", () =>
    Effect.gen(function* () {
      const { typed } = yield* scene(...choosing)
      const { exitCode, press, sees } = yield* typed("talk")
      yield* sees("> ")
      yield* press("go\r")
      yield* sees("? Which one?")
      yield* sees("> ")
      yield* press("neither\r")
      // Asked again.
      yield* sees("? Which one?")
      yield* sees("> ")
      yield* press("that\r")
      yield* sees('"answer":"that"')
      yield* sees("> ")
      yield* press("\u0003")
      expect(yield* exitCode).toBe(130)
    })
  )

  it.live(
    "a question waits for whoever comes: shown at a terminal, answered by a message, told to a script",
    () =>
      Effect.gen(function* () {
        const model = scripted([
          { when: 'message == "Quick!"', say: "Gladly" },
          { calls: [asking("Which one?", ["this", "that"])] }
        ])
        const { chat, story, typed } = yield* scene(model, choosing[1])
        expect((yield* chat("talk", "-m", "go")).error).toContain("Which one? (this, that)")
        const left = yield* typed("talk")
        yield* left.sees("? Which one?")
        yield* left.sees("- that")
        yield* left.sees("> ")
        yield* left.press("\u0003")
        expect(yield* left.exitCode).toBe(130)
        const refused = yield* chat("talk", "-m", "neither")
        expect(refused).toMatchObject({ exitCode: 1, out: [] })
        expect(refused.error).toMatch(/\S/)
        const path = yield* scriptOf({ type: "UserMessageEvent", content: "Quick!" })
        expect(yield* chat("talk", "--script", path)).toMatchObject({ exitCode: 3, out: [] })
        expect(yield* chat("talk", "-m", "this")).toMatchObject({ exitCode: 0, error: "" })
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "UserMessageEvent")).toEqual(["go", "Quick!"])
        const answered = log.find(({ type }) => type === "ToolCallCompletedEvent")
        expect(answered).toMatchObject({ tool: "ask_user", result: { answer: "this" } })
      })
  )

  it.live("at a terminal, words that come one by one keep the blanks between them", () =>
    Effect.gen(function* () {
      const said = "uno due\n  tre quattro"
      const { press, sees } = yield* (yield* scene(scripted([{ say: said, tokensPerSecond: 10 }]))).typed(
        "talk"
      )
      yield* sees("> ")
      yield* press("go\r")
      yield* sees("uno due")
      yield* sees("\n  tre quattro")
      yield* sees("> ")
    })
  )

  it.live("says so where there is nothing to say, or two things at once, and makes no conversation", () =>
    Effect.gen(function* () {
      const { chat, piped, story } = yield* scene()
      const nothing = { exitCode: 2, out: [], error: expect.not.stringContaining("--script") }
      expect(yield* chat("new", "--agent", "agent-of-talk", "-m", " ")).toEqual(nothing)
      expect(yield* chat("new", "--agent", "agent-of-talk", "-m", "x", "--script", "-")).toEqual({
        ...nothing,
        error: expect.stringMatching(/--message\b.*--script\b/)
      })
      for (const more of [[], ["--lines"]]) {
        const empty = yield* piped("\n", "talk", ...more)
        yield* until(() => empty.code() !== undefined)
        expect([empty.code(), empty.out(), empty.error()]).toEqual([
          2,
          "",
          expect.stringMatching(/^tropism: [^\n]+\n$/)
        ])
      }
      expect((yield* story.get("/contexts")).items.map(({ name }: Json) => name)).toEqual(["talk"])
    })
  )

  it.live("at a terminal, commands say who answers, what it is told to be, and where a fork is", () =>
    Effect.gen(function* () {
      const { story, typed } = yield* scene(choosing[0], choosing[1])
      const { exitCode, press, sees } = yield* typed("talk")
      const types = (line: string, shows: string) =>
        Effect.andThen(sees("> "), Effect.andThen(press(`${line}\r`), sees(shows)))
      yield* types("/system Be brief.", "Be brief.")
      yield* types("/model nothing", "/model provider:name")
      yield* types("/fork talk-2", "tropism chat talk-2")
      yield* types("/nonsense", "/help")
      yield* types("go", "? Which one?")
      yield* types("/interrupt", "/interrupt")
      yield* logWith(story, "talk", "AgentTurnInterruptedEvent")
      yield* types("/model scripted:daily-digest", "scripted:daily-digest")
      yield* types("/exit", "/exit")
      expect(yield* exitCode).toBe(0)
      const log = yield* quietLog(story, "talk")
      expect(contentsOf(log, "SystemPromptEvent")).toContain("Be brief.")
      expect(log.find(({ type }) => type === "SetLlmConfigEvent")).toMatchObject({
        provider: "scripted",
        name: "daily-digest"
      })
      expect(contentsOf(yield* logOf(story, "talk-2"), "SystemPromptEvent")).toContain("Be brief.")
    })
  )
})

/**
 * Windows: how much of a long context a model is shown, and what stands for the rest.
 *
 * The model server is on a socket and every request is judged as it arrived
 * there: the system prompt first, no call without its results, no result without
 * its call, and no more than the window's bound.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { FakeAnswer, FakeModelServer } from "../testing/fake-model-server.ts"
import { addEvent, echo, logOf, newContext, quietLog } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { calls, receivedChat, refuses, says, wiredStory, wireModel } from "../testing/model-words.ts"
import { eventually, type Json, newProject, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { inTier } from "../testing/tier.ts"
import { serveUntil } from "../testing/frozen-servers.ts"
import { whileServing } from "../testing/restarts.ts"

type Answers = readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]

const set = (story: Story, reducer: Json) =>
  story.ask("POST", "/contexts/talk/events", { type: "SetReducerEvent", reducer })

/** A conversation with an agent that may search, whose model is on a socket. */
const wiredTalk = Effect.fn("wiredTalk")(function* (answers: Answers, reducer: Json) {
  const wired = yield* wiredStory(answers)
  yield* newContext(wired.story, "talk", wireModel, { systemPrompt: "Be brief." })
  expect((yield* set(wired.story, reducer)).status).toBe(204)
  return wired
})

const search = (id: string, type: string) => ({ id, tool: "search_objects", arguments: { type, limit: 1 } })

/** Says something that asks for an answer, and waits until it has come. */
const ask = (story: Story, content: string) =>
  Effect.andThen(addEvent(story, "talk", content), quietLog(story, "talk"))

/** Says so many things that ask for none. */
const mention = (story: Story, count: number, contentOf: (n: number) => string) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => addEvent(story, "talk", contentOf(n), false),
    { concurrency: 8, discard: true }
  )

/** The requests as they arrived, oldest first, each remark of the user apart: neighbours arrive as one message. */
const requestsOf = ({ requests }: FakeModelServer): ReadonlyArray<ReadonlyArray<Json>> =>
  requests.map(({ body }) =>
    receivedChat(body).flatMap((message) =>
      message.role === "user" && !message.content.startsWith("<conversation>")
        ? message.content.split("\n\n").map((content: string) => ({ role: "user", content }))
        : [message]
    )
  )

/** The tokens of a message by its words alone, four characters each. */
const sizeOf = ({ calls: made = [], content = "", result, text = "" }: Json): number =>
  (content + text + JSON.stringify(result ?? "") + (made.length > 0 ? JSON.stringify(made) : "")).length / 4

/** What is wrong with a prompt, if anything is. */
const findBroken = (messages: ReadonlyArray<Json>, maxTokens: number): string | undefined => {
  if (messages[0]?.role !== "system" || !messages[0].content.startsWith("Be brief."))
    return "no system prompt"
  if (messages[1]?.role !== "user") return `it begins with ${messages[1]?.role}`
  let open: ReadonlyArray<string> = []
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.includes(message.id)) return `a result of ${message.id} without its call`
      open = open.filter((id) => id !== message.id)
    } else if (open.length > 0) return `a ${message.role} before the result of ${open[0]}`
    if (message.role === "assistant") open = message.calls.map(({ id }: Json) => id)
  }
  if (open.length > 0) return `no result of ${open.join(", ")}`
  const tokens = messages.reduce((sum, message) => sum + sizeOf(message), 0)
  return tokens > maxTokens ? `${tokens} tokens` : undefined
}

describe("Reducers", () => {
  it.live(
    "S004-F05, F09 of hundreds of messages with tool calls, every prompt has the system prompt and whole pairs, in its bound",
    () =>
      Effect.gen(function* () {
        const [rounds, stepsPerRound, mentions] = inTier([1, 4, 40], [2, 20, 152], [6, 20, 152])
        const callsPerStep = 8
        const answers = Array.from({ length: rounds }, (_, round) => [
          ...Array.from({ length: stepsPerRound }, (_step, step) =>
            calls(
              ...Array.from({ length: callsPerStep }, (_call, call) =>
                search(`call_${call}`, `Type${round}x${step}x${call}`)
              )
            )
          ),
          says(`Round ${round} is done.`)
        ]).flat()
        const [first = says(""), ...more] = answers
        const maxTokens = 2_000
        const { models, story } = yield* wiredTalk([first, ...more], {
          type: "truncating",
          maxMessages: null,
          maxTokens
        })
        for (let round = 0; round < rounds; round++) {
          yield* mention(
            story,
            mentions,
            (n) => `Remark ${n} of round ${round}: ${"so it is ".repeat(n % 20)}`
          )
          yield* ask(story, `Question ${round}`)
        }
        const state = yield* story.get("/contexts/talk/state")
        const shown = state.messages.length - 1
        expect(state.droppedMessages + shown).toBe(
          rounds * (mentions + 1 + stepsPerRound * (1 + callsPerStep) + 1)
        )
        expect(state.droppedMessages + shown).toBeGreaterThanOrEqual(inTier(75, 600, 2_000))
        expect(state).toMatchObject({ summary: null, config: { reducer: { maxTokens } } })
        expect(state.promptTokens).toBeLessThanOrEqual(maxTokens)
        const requests = requestsOf(models)
        expect(requests).toHaveLength(answers.length)
        expect(requests.flatMap((messages) => findBroken(messages, maxTokens) ?? [])).toEqual([])
        // In the middle of a long turn, the question is what the window begins with.
        expect(
          requests
            .at(-1)
            ?.filter(({ role }) => role === "user")
            .at(-1)?.content
        ).toBe(`Question ${rounds - 1}`)
        // Although the model gives each answer's calls the same ids, each was made and has a result of its own.
        const [run] = (yield* story.get("/runs?limit=1")).items
        const made = yield* story.get(`/runs/${run.id}/tool-calls?limit=200`)
        expect(new Set(made.items.map(({ callId }: Json) => callId)).size).toBe(stepsPerRound * callsPerStep)
        expect((yield* story.get("/verify")).differences).toEqual([])
      }).pipe(Effect.scoped),
    300_000
  )

  it.live("S004-F05 what cannot be a reducer is refused with its place", () =>
    Effect.gen(function* () {
      const { story } = yield* wiredTalk([says("Yes.")], { type: "whole" })
      const before = yield* logOf(story, "talk")
      const refused: ReadonlyArray<readonly [Json, string]> = [
        [{ type: "summarizing", maxTokens: 1_000, keepTokens: 501 }, "/reducer/keepTokens"],
        [{ type: "truncating", maxMessages: 0, maxTokens: null }, "/reducer/maxMessages"],
        [{ type: "truncating", maxMessages: 10 }, "/reducer/maxTokens"],
        [{ type: "code", source: "messages.slice(-1)" }, "/reducer/type"]
      ]
      for (const [reducer, pointer] of refused) expectProblem(yield* set(story, reducer), 422, pointer)
      expect(yield* logOf(story, "talk")).toEqual(before)
    }).pipe(Effect.scoped)
  )
})

const summarizing = { type: "summarizing", maxTokens: 1_000, keepTokens: 200 }

/** Some 1,100 tokens in 20 messages. */
const remarks = (n: number) => `Remark ${n}: ${"the tea is green ".repeat(12)}`

const modelCallsOf = (story: Story, run: Json) =>
  Effect.map(story.get(`/runs/${run.id}/model-calls?limit=200`), ({ items }): ReadonlyArray<Json> => items)

const lastRun = (story: Story) => Effect.map(story.get("/runs?limit=1"), ({ items }): Json => items[0])

const summaries = (log: ReadonlyArray<Json>) => log.filter(({ type }) => type === "ContextSummarizedEvent")

describe("Summarising", () => {
  it.live(
    "S004-F10 a full window is summed up by the model, and the summary stands for what was let go",
    () =>
      Effect.gen(function* () {
        const { models, story } = yield* wiredTalk(
          [calls(search("a", "Tea")), says("Sencha."), says("They spoke of green tea."), says("Green.")],
          summarizing
        )
        yield* ask(story, "Which tea?")
        yield* mention(story, 20, remarks)
        const log = yield* ask(story, "Which colour?")
        const [summary] = summaries(log)
        expect(summaries(log)).toHaveLength(1)
        expect(summary).toMatchObject({
          content: "They spoke of green tea.",
          model: "openai-compatible:wire-1",
          triggersAgentTurn: false
        })
        const [, , asked, last] = requestsOf(models)
        expect(asked?.[1]?.content).toMatch(/Which tea\?[^]*search_objects[^]*Sencha\.[^]*Remark/)
        expect(models.requests[2]?.body).not.toHaveProperty("tools")
        expect(last?.[0]?.content).toMatch(/^Be brief\.\n\n.*\n\nThey spoke of green tea\.$/)
        expect(last?.slice(1).map(({ content }) => content.slice(0, 7))).toEqual([
          "Remark ",
          "Remark ",
          "Remark ",
          "Which c"
        ])
        const run = yield* lastRun(story)
        expect(run).toMatchObject({
          status: "completed",
          stepCount: 1,
          usage: { inputTokens: 22, outputTokens: 14 }
        })
        const requests = yield* modelCallsOf(story, run)
        expect(requests.map(({ purpose, step }) => [purpose, step])).toEqual([
          ["summary", 1],
          ["step", 1]
        ])
        const exchange = yield* story.get(`/runs/${run.id}/model-calls/1`)
        expect(exchange.request.messages.map(({ content }: Json) => content)).toEqual(
          asked?.map(({ content }) => content)
        )
        expect(exchange.response).toEqual({ text: "They spoke of green tea.", toolCalls: [] })
        expect((yield* story.get(`/runs/${run.id}/steps`)).items).toMatchObject([
          { number: 1, text: "Green." }
        ])
        const state = yield* story.get("/contexts/talk/state")
        expect(state.summary).toBe("They spoke of green tea.")
        expect(state.droppedMessages).toBe(summary.messages)
        expect((yield* story.get("/verify")).differences).toEqual([])
      }).pipe(Effect.scoped)
  )

  it.live("S004-F10 each summary has read the one before, and an agent's own instructions say how", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredTalk(
        [says("First summary."), says("One."), says("Second summary."), says("Two.")],
        { ...summarizing, instructions: "Say it in Latin." }
      )
      yield* mention(story, 20, remarks)
      yield* ask(story, "And one?")
      yield* mention(story, 20, remarks)
      const log = yield* ask(story, "And two?")
      expect(summaries(log).map(({ content }) => content)).toEqual(["First summary.", "Second summary."])
      const [, , second] = requestsOf(models)
      expect(second?.[0]?.content).toBe("Say it in Latin.")
      expect(second?.[1]?.content).toMatch(/^<summary_so_far>\nFirst summary\.\n<\/summary_so_far>/)
    }).pipe(Effect.scoped)
  )

  it.live("S004-F10 a model that fails to sum up costs the oldest messages, and not the turn", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredTalk(
        [refuses(400, "Too long"), says("Still here."), says(""), says("And here.")],
        summarizing
      )
      yield* mention(story, 20, remarks)
      const failed = yield* ask(story, "Are you there?")
      expect(summaries(failed)).toMatchObject([{ content: null, error: expect.stringContaining("Too long") }])
      yield* mention(story, 20, remarks)
      const silent = yield* ask(story, "And now?")
      expect(summaries(silent)[1]).toMatchObject({ content: null })
      expect(
        silent.filter(({ type }) => type === "AssistantMessageEvent").map(({ content }) => content)
      ).toEqual(["Still here.", "And here."])
      expect(
        requestsOf(models).flatMap((messages, n) => (n % 2 === 1 ? (findBroken(messages, 1_000) ?? []) : []))
      ).toEqual([])
      const [, run] = (yield* story.get("/runs")).items
      expect((yield* modelCallsOf(story, run)).map(({ purpose, status }) => [purpose, status])).toEqual([
        ["summary", "failed"],
        ["step", "answered"]
      ])
      expect((yield* story.get("/verify")).differences).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("S004-F10 somebody who speaks while it is summed up is heard first", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredTalk(
        [{ kind: "silence" }, says("All of it."), says("Both.")],
        summarizing
      )
      yield* mention(story, 20, remarks)
      yield* addEvent(story, "talk", "One?")
      yield* eventually(
        Effect.sync(() => models.requests.length),
        (count) => count === 1
      )
      const log = yield* ask(story, "Two?")
      expect(log.filter(({ type }) => type === "AgentTurnInterruptedEvent")).toMatchObject([
        { reason: "message" }
      ])
      expect(summaries(log)).toMatchObject([{ content: "All of it." }])
      expect(log.filter(({ type }) => type === "AssistantMessageEvent")).toMatchObject([{ content: "Both." }])
      expect(requestsOf(models).at(-1)?.slice(-2)).toMatchObject([{ content: "One?" }, { content: "Two?" }])
    }).pipe(Effect.scoped)
  )

  it.live("S003-R62 S004-F10 an agent's reducer holds in all its chats, from the turn after it changes", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([
        says("Yes."),
        says("They spoke of tea."),
        says("Green."),
        says("All."),
        says("Own.")
      ])
      const agent = yield* newContext(story, "talk", wireModel, { systemPrompt: "Be brief." })
      yield* ask(story, "Which tea?")
      yield* mention(story, 20, remarks)
      // The definition changes while the conversation is there.
      const { version } = yield* story.patch(`/agents/${agent.id}`, { reducer: summarizing })
      expect(version).toBe(2)
      const log = yield* ask(story, "Which colour?")
      expect(summaries(log)).toMatchObject([{ content: "They spoke of tea." }])
      expect(log.filter(({ type }) => type === "SetReducerEvent")).toMatchObject([
        { reducer: summarizing, isOfAgent: true }
      ])
      // What somebody sets in the context stands above it.
      yield* set(story, { type: "whole" })
      yield* mention(story, 20, remarks)
      expect(summaries(yield* ask(story, "Is that all?"))).toHaveLength(1)
      expect((yield* story.get("/contexts/talk/state")).config.reducer).toEqual({ type: "whole" })
      yield* story.patch(`/agents/${agent.id}`, { reducer: { ...summarizing, keepTokens: 400 } })
      yield* ask(story, "And now?")
      expect((yield* story.get("/contexts/talk/state")).config.reducer).toEqual({ type: "whole" })
      expect(models.requests).toHaveLength(5)
      yield* story.post("/contexts", { name: "other", agentId: agent.id })
      expect((yield* story.get("/contexts/other/state")).config.reducer).toMatchObject({ keepTokens: 400 })
      expect((yield* story.get("/verify")).differences).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("S003-R62 without a word of it a very long conversation is summed up, and a run's log too", () =>
    Effect.gen(function* () {
      const { story } = yield* wiredStory([
        says("Yes."),
        says("They spoke of tea."),
        says("Green."),
        calls(...["a", "b", "c", "d"].map((id) => search(id, "Tea"))),
        says("Done.")
      ])
      yield* newContext(story, "talk", wireModel, { systemPrompt: "Be brief." })
      const long = (n: number) => `${n} ${"so it is with tea ".repeat(5_000)}`
      yield* mention(story, 2, long)
      const early = yield* ask(story, "Which tea?")
      expect(summaries(early)).toEqual([])
      yield* mention(story, 4, long)
      const log = yield* ask(story, "Which colour?")
      expect(summaries(log)).toMatchObject([{ content: "They spoke of tea." }])
      const state = yield* story.get("/contexts/talk/state")
      expect(state.config.reducer).toEqual({ type: "summarizing", maxTokens: 100_000, keepTokens: 50_000 })
      expect(state.promptTokens).toBeLessThanOrEqual(100_000)
      // A short one has no event of it.
      const other = yield* newContext(story, "short", echo)
      yield* addEvent(story, "short", "Hello")
      const short = yield* quietLog(story, "short")
      expect(short.filter(({ type }) => type === "SetReducerEvent")).toEqual([])
      expect(other.reducer).toBeNull()
      expect((yield* story.get("/verify")).differences).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("S003-R62 S004-F05 a reducer of a definition is judged when it is saved", () =>
    Effect.gen(function* () {
      const { story } = yield* wiredStory([says("Yes.")])
      const agent = { name: "a", prompt: "Look.", triggerType: "manual" }
      const refused: ReadonlyArray<readonly [Json, string]> = [
        [{ ...summarizing, keepTokens: 900 }, "/reducer/keepTokens"],
        [{ type: "summarizing", maxTokens: 1, keepTokens: 1 }, "/reducer/maxTokens"],
        [{ type: "forgetful" }, "/reducer/type"]
      ]
      for (const [reducer, pointer] of refused)
        expectProblem(yield* story.ask("POST", "/agents", { ...agent, reducer }), 422, pointer)
      const input = { agents: [{ ...agent, reducer: { type: "whole" } }] }
      expect(yield* story.post("/agents/apply", input)).toMatchObject({ agents: [{ outcome: "created" }] })
      expect(yield* story.post("/agents/apply", input)).toMatchObject({ agents: [{ outcome: "unchanged" }] })
    }).pipe(Effect.scoped)
  )

  it.live(
    "S004-F10 a server that dies before or after the request leaves a window that is summed up once",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const model = scripted([
          { when: "message contains '</conversation>'", say: "They spoke of tea." },
          { say: "Yes." }
        ])
        const projectId = yield* serveUntil(access, "run.beforeSummary", 1, (doors) =>
          Effect.gen(function* () {
            const story = yield* newProject(doors, access)
            yield* newContext(story, "talk", model, { systemPrompt: "Be brief." })
            yield* set(story, summarizing)
            yield* mention(story, 20, remarks)
            yield* addEvent(story, "talk", "Well?")
            return story.projectId
          })
        )
        yield* serveUntil(access, "run.afterSummary", 1, () => Effect.void)
        yield* whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            const log = yield* quietLog(story, "talk")
            expect(summaries(log)).toMatchObject([{ content: "They spoke of tea." }])
            expect(log.filter(({ type }) => type === "AssistantMessageEvent")).toMatchObject([
              { content: "Yes." }
            ])
            const run = yield* lastRun(story)
            expect(run).toMatchObject({ status: "completed", stepCount: 1 })
            expect((yield* story.get("/verify")).differences).toEqual([])
          })
        )
      }).pipe(Effect.scoped)
  )
})

/**
 * A database that is away for some seconds, as at its own restart: what has nothing to do with it goes on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { runLimits } from "../src/limits.ts"
import { chatChunk, chatEnd, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import { outageLimits } from "../src/outbox/outages.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { interposedServer } from "../testing/interposed.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { oddServer } from "../testing/mcp-odd-server.ts"
import { callEventsOf, newCaller } from "../testing/mcp-runs.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { sendCompletion } from "../testing/openai-words.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, startServer, type Story } from "../testing/platform.ts"
import { answering, newProviderStory } from "../testing/provider-story.ts"
import { asTimePasses, passing, patientDatabase } from "../testing/shared-server.ts"
import { acquireSilentWay } from "../testing/silent-way.ts"
import { calling, callsOf, endedRuns, watcher } from "../testing/story-words.ts"
import { begin, partialOf } from "../testing/time-words.ts"

const piece = (text: string): string => toEvent(chatChunk({ content: text }))

/** An answer in three pieces, each when the story wants it. */
const inPieces: FakeAnswer = {
  kind: "stream",
  chunks: [piece("One.")],
  ending: "hang",
  rest: [piece(" Two."), [piece(" Three."), ...chatEnd("stop").map(toEvent)].join("")]
}

const leaseOf = (story: Story, run: Json) =>
  Effect.map(
    ask(story.access, "select lease_expires_at::text from kb.agent_runs where id = $1", [run.id]),
    ([row]) => row?.[0]
  )

describe("A model request under way while the database is away for less than a lease", () => {
  it.effect("goes on in the same attempt, and what is shown of it and its lease are kept afterwards", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([inPieces])
        const { become } = yield* operatedDatabase(story.access)
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One.")
        const lease = yield* leaseOf(story, run)

        yield* become("connection limit 0")
        yield* provider.letGoOn
        // Long enough for looks at who breaks in, for texts that are to be kept, and for heartbeats.
        yield* passing(2 * runLimits.heartbeatIntervalMs, 200)
        yield* become("connection limit -1")

        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One. Two.")
        yield* asTimePasses(250, leaseOf(story, run), (found) => found !== lease)
        expect(yield* Deferred.isDone(provider.hungUp)).toBe(false)
        yield* provider.letGoOn
        expect(yield* endedRuns(story, agent, 1)).toMatchObject([
          { id: run.id, status: "completed", attempt: 1, summary: "One. Two. Three." }
        ])
        expect(provider.requests).toHaveLength(1)
      })
    )
  )
})

/** Says something and comes to its end when the story wants it. */
const ending = (reason: string, ...before: ReadonlyArray<unknown>): FakeAnswer => ({
  kind: "stream",
  chunks: [piece("One.")],
  ending: "hang",
  rest: [[...before, ...chatEnd(reason)].map(toEvent).join("")]
})

const callingNote = ending(
  "tool_calls",
  chatChunk({
    tool_calls: [
      {
        index: 0,
        id: "c1",
        type: "function",
        function: { name: "create_object", arguments: JSON.stringify({ type: "Note", properties: {} }) }
      }
    ]
  })
)

/** Lets an answer come to its end while the database is away, and for longer than one try to keep it takes. */
const endedWhileAway = Effect.fnUntraced(function* (
  story: Story,
  agent: Json,
  goOn: Effect.Effect<void>,
  count = 1
) {
  const { become } = yield* operatedDatabase(story.access)
  yield* become("connection limit 0")
  yield* goOn
  yield* passing(3 * outageLimits.retryMs, 200)
  yield* become("connection limit -1")
  return yield* asTimePasses(250, endedOf(story, agent), ({ length }) => length === count)
})

describe("An answer that comes to its end while the database is away for less than a lease", () => {
  it.effect("is kept by the same attempt, and the model is asked once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([ending("stop")])
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One.")
        const runs = yield* endedWhileAway(story, agent, provider.letGoOn)
        expect(runs).toMatchObject([{ id: run.id, status: "completed", attempt: 1, summary: "One." }])
        expect(provider.requests).toHaveLength(1)
        expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
      })
    )
  )

  it.effect("and calls a tool is kept as well, and the tool is called once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([callingNote, answering("Done.")])
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One.")
        const runs = yield* endedWhileAway(story, agent, provider.letGoOn)
        expect(runs).toMatchObject([{ id: run.id, status: "completed", attempt: 1, summary: "Done." }])
        expect(provider.requests).toHaveLength(2)
        expect((yield* story.get("/tasks")).items).toHaveLength(1)
        expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
      })
    )
  )
})

/** Lets an answer be kept by a server that never hears that it was. */
const keptUnheard = Effect.fnUntraced(function* (
  ...answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]
) {
  const ways: Array<Effect.Success<ReturnType<typeof acquireSilentWay>>> = []
  const { agent, provider, story } = yield* newProviderStory(answers, {}, (access) =>
    Effect.map(acquireSilentWay(access), (way) => {
      ways.push(way)
      return { ...access, ...way.access }
    })
  )
  const [way] = ways
  if (way === undefined) throw new Error("No server was started")
  const run = yield* begin(story, agent)
  yield* Deferred.await(provider.asked)
  yield* asTimePasses(50, partialOf(story, run), (text) => text === "One.")
  yield* way.loseAnswers
  yield* provider.letGoOn
  const said = Effect.map(
    ask(
      story.access,
      "select count(*)::int from kb.context_events where context_name = $1 and type = 'AssistantMessageEvent'",
      [run.contextName]
    ),
    ([row]) => row?.[0]
  )
  yield* asTimePasses(50, said, (count) => count === 1)
  yield* way.cut
  return { agent, provider, run, story, said }
})

describe("An answer that was kept although its server never heard so", () => {
  it.effect("ends its run once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, run, said, story } = yield* keptUnheard(ending("stop"))
        expect(yield* asTimePasses(250, endedOf(story, agent), ({ length }) => length === 1)).toMatchObject([
          { id: run.id, status: "completed", attempt: 1, summary: "One." }
        ])
        yield* passing(3 * outageLimits.retryMs, 200)
        expect(provider.requests).toHaveLength(1)
        expect(yield* said).toBe(1)
        expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
      })
    )
  )

  it.effect("is neither kept nor asked for again where it goes on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, run, said, story } = yield* keptUnheard(callingNote, answering("Done."))
        expect(yield* asTimePasses(250, endedOf(story, agent), ({ length }) => length === 1)).toMatchObject([
          { id: run.id, status: "completed", attempt: 1, summary: "Done." }
        ])
        expect(provider.requests).toHaveLength(2)
        expect(yield* said).toBe(2)
        expect((yield* story.get("/tasks")).items).toHaveLength(1)
        expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
      })
    )
  )
})

describe("Whoever waits for an answer while the database is away for less than a lease", () => {
  it.effect("is told the answer, so that nobody asks twice", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([ending("stop"), ending("stop")], {
          triggerType: "manual"
        })
        const triggered = yield* Effect.forkScoped(story.ask("POST", `/agents/${agent.id}/trigger`, {}))
        const asked = yield* Effect.forkScoped(
          sendCompletion(story, { model: agent.name, messages: [{ role: "user", content: "Hello" }] })
        )
        yield* asTimePasses(
          50,
          Effect.sync(() => provider.requests.length),
          (count) => count === 2
        )
        const runs = yield* endedWhileAway(story, agent, provider.letGoOn, 2)
        expect(runs.map(({ attempt, status }) => [attempt, status])).toEqual([
          [1, "completed"],
          [1, "completed"]
        ])
        const answered = Effect.sync(() => [triggered, asked].every((one) => one.pollUnsafe() !== undefined))
        yield* asTimePasses(250, answered, (isAnswered) => isAnswered)
        expect(yield* Fiber.join(triggered)).toMatchObject({
          status: 200,
          body: { status: "completed", summary: "One." }
        })
        expect(yield* Fiber.join(asked)).toMatchObject({
          status: 200,
          body: { choices: [{ message: { content: "One." } }] }
        })
        expect(provider.requests).toHaveLength(2)
      })
    )
  )
})

describe("A call of a foreign tool that is answered while the database is away for less than a lease", () => {
  it.effect("is recorded by the same attempt with what it came to, and made once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* patientDatabase), embedded: false }
        const story = yield* newProject(yield* startServer(access), access)
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const charge = { tool: "shop__charge", arguments: { amount: 3, wait: true } }
        const agent = yield* newCaller(story, [charge])
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* asTimePasses(50, diary.called, (called) => called.length === 1)
        const runs = yield* endedWhileAway(story, agent, diary.open)
        expect(runs).toMatchObject([{ id: run.id, status: "completed", attempt: 1 }])
        expect(yield* callEventsOf(story, run)).toMatchObject([
          { type: "ToolCallStartedEvent" },
          { type: "ToolCallCompletedEvent" }
        ])
        expect(yield* diary.called).toHaveLength(1)
        expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
      })
    )
  )
})

describe("A call that a foreign server refuses while the database is away for less than a lease", () => {
  it.effect("is recorded as one that was not made", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* patientDatabase), embedded: false }
        const story = yield* newProject(yield* startServer(access), access)
        const refusal = Promise.withResolvers<Response>()
        const odd = yield* oddServer(({ message }) =>
          message?.method === "tools/call" ? refusal.promise : undefined
        )
        yield* addServer(story, { type: "http", url: odd.url })
        const agent = yield* newCaller(story, [{ tool: "shop__lookup", arguments: { word: "tree" } }])
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* asTimePasses(
          50,
          Effect.sync(() => odd.of("tools/call")),
          ({ length }) => length === 1
        )
        const refuse = Effect.sync(() => refusal.resolve(new Response("no", { status: 429 })))
        yield* endedWhileAway(story, agent, refuse)
        const calls = yield* callsOf(story, run)
        expect(calls).toMatchObject([{ status: "failed", result: { reason: "unavailable" } }])
      })
    )
  )
})

describe("A run that breaks because the database is away", () => {
  it.live("is given back when it is back, and not first when its lease is over", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const { codes, logger } = keptLines()
        const { doors, interpose } = yield* interposedServer(access, [logger])
        const story = yield* newProject(doors, access)
        const { become, change } = yield* operatedDatabase(access)
        const call = { tool: "create_object", arguments: { type: "Note", properties: {} } }
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", model: calling(call) }))
        const away = yield* Deferred.make<void>()
        const goAway = Effect.gen(function* () {
          // At no time of this story is its lease over.
          yield* ask(access, "update kb.agent_runs set lease_expires_at = now() + interval '1 hour'")
          yield* become("connection limit 0")
          yield* Deferred.succeed(away, undefined)
        })
        yield* interpose("run.afterStep", goAway)
        const run = yield* begin(story, agent)
        yield* Deferred.await(away)
        const awayMs = performance.now()
        const sinceMs = Effect.map(story.ask("GET", "/runs"), () => performance.now() - awayMs)
        // Longer than it takes to give a run back once.
        yield* eventually(sinceMs, (ms) => ms > 2 * outageLimits.retryMs)
        yield* change("connection limit -1")
        const [ended] = yield* eventually(endedOf(story, agent), ({ length }) => length === 1)
        expect(ended).toMatchObject({ id: run.id, status: "completed", attempt: 2 })
        // That is told of the outage, and of no run besides.
        expect(codes.filter((code) => code === "attemptBroke")).toEqual([])
      })
    )
  )
})

describe("A model request under way while the database is away for longer than a lease", () => {
  it.effect("is aborted when the lease is over, and another attempt asks again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([inPieces, answering("All.")])
        const { become } = yield* operatedDatabase(story.access)
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* become("connection limit 0")
        yield* asTimePasses(250, Deferred.isDone(provider.hungUp), (isDone) => isDone)
        yield* become("connection limit -1")
        // The database has a clock of its own.
        yield* ask(story.access, "update kb.agent_runs set lease_expires_at = now() where id = $1", [run.id])
        const [ended] = yield* asTimePasses(250, endedOf(story, agent), ({ length }) => length === 1)
        expect(ended).toMatchObject({ status: "completed", attempt: 2, summary: "All." })
        expect(provider.requests).toHaveLength(2)
      })
    )
  )
})

const endedOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.ask("GET", `/runs?agentId=${agent.id}`), ({ body }) =>
    (body.items ?? []).filter(({ completedAt }: Json) => completedAt !== null)
  )

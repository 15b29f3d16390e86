/**
 * Contexts that several servers write in, and whose servers are killed meanwhile.
 *
 * Real processes on one database, real time and real `kill -9`. What a log says
 * is read over HTTP, from a server that lives.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schedule, Stream } from "effect"
import {
  contentsOf,
  countOf,
  echo,
  idsUpTo,
  isQuiet,
  newContext,
  say,
  typesOf
} from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { allOf } from "../testing/import-words.ts"
import { type MortalServer, prepareMortal, startMortal } from "../testing/mortal-servers.ts"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, type Story, storyIn } from "../testing/platform.ts"
import { parsePrometheus, sumOf } from "../testing/prometheus.ts"

/** Two servers as two programs, on a database that is not theirs alone. */
class TwoPrograms extends Context.Service<
  TwoPrograms,
  { readonly here: MortalServer; readonly there: MortalServer; readonly access: Story["access"] }
>()("@tropism/server/stories/TwoPrograms") {
  static readonly layer = Layer.effect(
    TwoPrograms,
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      return { here: yield* startMortal(access), there: yield* startMortal(access), access }
    })
  )
}

/** A project of one's own, through the doors of both. */
const bothDoors = Effect.gen(function* () {
  const { access, here, there } = yield* TwoPrograms
  const story = yield* newProject(here, access)
  return { access, story, other: storyIn(there, access, story.projectId) }
})

/** Every event of a log, in order. */
const wholeLog = (story: Story, name: string) => allOf(story, `/contexts/${name}/events`)

/** The whole log, once nobody is at work in the project. */
const restingLog = (story: Story, name: string) =>
  Effect.andThen(eventually(story.get("/runs?limit=200"), isQuiet, 30_000), wholeLog(story, name))

/** The numbers are 1 to n, and each event but the first has a parent that is there, before it. */
const expectOneLine = (name: string, log: ReadonlyArray<Json>) => {
  expect(log.map(({ id }) => id)).toEqual(idsUpTo(name, log.length))
  const places = new Map(log.map(({ id }, place) => [id, place]))
  const astray = log.filter(
    ({ parentEventId }, place) => place > 0 && !((places.get(parentEventId) ?? log.length) < place)
  )
  expect(astray).toEqual([])
  expect(log[0]?.parentEventId).toBeNull()
}

/** Each turn that began ended before the next began, and none is open. */
const expectTurnsWhole = (log: ReadonlyArray<Json>) => {
  const turns = log.filter(({ type }) => type.startsWith("AgentTurn"))
  const starts = turns.filter((_, place) => place % 2 === 0)
  expect(starts.map(({ type, turnNumber }) => [type, turnNumber])).toEqual(
    starts.map((_, place) => ["AgentTurnStartedEvent", place + 1])
  )
  const ends = turns.filter((_, place) => place % 2 === 1)
  expect(ends.map(({ turnNumber }) => turnNumber)).toEqual(starts.map(({ turnNumber }) => turnNumber))
  expect(ends.filter(({ type }) => type === "AgentTurnStartedEvent")).toEqual([])
  return { starts, ends }
}

/** How long each turn kept the first of those waiting who had asked for it. */
const waitsOf = (log: ReadonlyArray<Json>): ReadonlyArray<number> => {
  let first: string | undefined
  return log.flatMap(({ timestamp, triggersAgentTurn, type }) => {
    if (triggersAgentTurn) first ??= timestamp
    if (type !== "AgentTurnStartedEvent" || first === undefined) return []
    const waitedMs = new Date(timestamp).getTime() - new Date(first).getTime()
    first = undefined
    return [waitedMs]
  })
}

/** Real programs on a busy machine take their time. */
const patienceMs = 240_000

const messages = (count: number) => Array.from({ length: count }, (_, index) => `Message ${index + 1}`)

/** Says something to a server that may die as soon as it works on it: no worker takes its run before it is answered. */
const answeredFirst = Effect.fnUntraced(function* (story: Story, name: string, message: string) {
  const claims = yield* holding(story.access, lockOf("claims"))
  const answer = yield* say(story, name, message)
  yield* Effect.orDie(claims.query("commit"))
  return answer
})

/** Goes on speaking, each 30 ms, for as long as a server answers; answers what it has acknowledged. */
const speakUntilDead = (story: Story, name: string) =>
  Stream.fromIterable(messages(200)).pipe(
    Stream.schedule(Schedule.fixed("30 millis")),
    Stream.mapEffect((message) =>
      Effect.map(Effect.exit(say(story, name, message)), (answer) => ({ message, answer }))
    ),
    Stream.takeWhile(({ answer }) => Exit.isSuccess(answer) && answer.value.status === 204),
    Stream.map(({ message }) => message),
    Stream.runCollect
  )

layer(TwoPrograms.layer, { excludeTestServices: true })((it) => {
  describe("Two servers on one database: one context, one log", () => {
    it.effect(
      "S004-R02, R14, F16 a hundred messages at once through both get the ids 1 to n, each once",
      () =>
        Effect.gen(function* () {
          const { other, story } = yield* bothDoors
          yield* newContext(story, "crowd")
          const answers = yield* Effect.forEach(
            messages(100),
            (message, index) => say(index % 2 === 0 ? story : other, "crowd", message),
            { concurrency: 100 }
          )
          expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 204))
          const log = yield* restingLog(other, "crowd")
          expectOneLine("crowd", log)
          expect(contentsOf(log, "UserMessageEvent").toSorted()).toEqual(messages(100).toSorted())
          const { ends } = expectTurnsWhole(log)
          expect(ends.at(-1)?.type).toBe("AgentTurnCompletedEvent")
          expect(yield* wholeLog(story, "crowd")).toEqual(log)
          expect((yield* story.get("/verify")).differences).toEqual([])
        }),
      patienceMs
    )

    it.effect(
      "S004-R03, R05, F16 what one server has acknowledged is there when it is killed at once",
      () =>
        Effect.gen(function* () {
          const { access, other, story } = yield* bothDoors
          const doomed = yield* startMortal(access)
          const third = storyIn(doomed, access, story.projectId)
          yield* newContext(story, "crowd")
          const kept: Array<string> = []
          const doors = [third, story, third, other]
          yield* Effect.forEach(
            messages(100),
            (message, index) =>
              // Whoever speaks to a server that dies has no answer.
              Effect.exit(say(doors[index % 4] ?? story, "crowd", message, false)).pipe(
                Effect.tap((answer) => {
                  if (Exit.isFailure(answer) || answer.value.status !== 204) return Effect.void
                  kept.push(message)
                  return kept.length === 25 ? doomed.kill : Effect.void
                })
              ),
            { concurrency: 100 }
          )
          yield* doomed.died
          const log = yield* wholeLog(story, "crowd")
          expectOneLine("crowd", log)
          const contents = contentsOf(log, "UserMessageEvent")
          expect(new Set(contents).size).toBe(contents.length)
          expect(kept.filter((message) => !contents.includes(message))).toEqual([])
          expect(kept.length).toBeGreaterThanOrEqual(50)
        }),
      patienceMs
    )

    it.effect(
      "S004-R39, R43 two hundred messages, one each 30 ms: turns begin within the maximum wait, and each ends once",
      () =>
        Effect.gen(function* () {
          const { other, story } = yield* bothDoors
          const slow = scripted([{ say: "Answer {{ turn }}: {{ message }}", latencyMs: 200 }])
          yield* newContext(story, "stream", slow)
          const statuses = yield* Stream.fromIterable(messages(200)).pipe(
            Stream.schedule(Schedule.fixed("30 millis")),
            Stream.mapEffect(
              (message) => say(Number(message.slice(-1)) % 2 === 0 ? story : other, "stream", message),
              { concurrency: 20 }
            ),
            Stream.map(({ status }) => status),
            Stream.runCollect
          )
          expect(statuses).toEqual(messages(200).map(() => 204))
          const log = yield* restingLog(other, "stream")
          expectOneLine("stream", log)
          expect(contentsOf(log, "UserMessageEvent").toSorted()).toEqual(messages(200).toSorted())
          const { ends, starts } = expectTurnsWhole(log)
          // Nobody was quiet while they came, and the turns began all the same: a turn that was starved would wait as long.
          const at = (message: Json | undefined) => Date.parse(message?.timestamp)
          const said = log.filter(({ type }) => type === "UserMessageEvent")
          expect(starts.length).toBeGreaterThanOrEqual(3)
          expect(Math.max(...waitsOf(log))).toBeLessThan(at(said.at(-1)) - at(said[0]))
          expect(ends.at(-1)?.type).toBe("AgentTurnCompletedEvent")
          const lastAsked = log.findLastIndex(({ triggersAgentTurn }) => triggersAgentTurn)
          expect(log.findLastIndex(({ type }) => type === "AgentTurnStartedEvent")).toBeGreaterThan(lastAsked)
        }),
      patienceMs
    )

    it.effect(
      "S004-F17, F18 over HTTP one user speaks with several agents at once, at any server, and another project sees none of it",
      () =>
        Effect.gen(function* () {
          const { other, story } = yield* bothDoors
          const apart = yield* bothDoors
          const talks = ["first", "second", "third"].map((name) => ({ at: story, from: other, name }))
          const all = [...talks, { at: apart.other, from: apart.story, name: "first" }]
          yield* Effect.forEach(all, ({ at, name }) => newContext(at, name))
          yield* Effect.forEach(all, ({ at, name }, place) => say(at, name, `Hello ${place}`), {
            concurrency: all.length
          })
          for (const [place, { from, name }] of all.entries()) {
            const log = yield* restingLog(from, name)
            expect(contentsOf(log, "UserMessageEvent")).toEqual([`Hello ${place}`])
            expect(contentsOf(log, "AssistantMessageEvent")).toEqual([`Answer 1: Hello ${place}`])
          }
          expect((yield* apart.story.ask("GET", "/contexts/second/events")).status).toBe(404)
          expect((yield* apart.other.ask("GET", "/contexts/third")).status).toBe(404)
          // Nobody is at work on a context that rests: no server holds anything for it.
          const { body } = yield* other.send("GET", "/metrics")
          expect(sumOf(parsePrometheus(body), "tropism_leases")).toBe(0)
        }),
      patienceMs
    )

    // The last one: it leaves one server of the two.
    it.effect(
      "S004-R02, R18 while the server that holds the actor is dead, the other only appends; when the lease has run out it takes the context up",
      () =>
        Effect.gen(function* () {
          const { here, there } = yield* TwoPrograms
          const { access, other, story } = yield* bothDoors
          yield* newContext(story, "talk")
          yield* here.dieAt("run.afterTurnStarted", 1)
          yield* there.dieAt("run.afterTurnStarted", 1)
          yield* answeredFirst(story, "talk", "One")
          const isHere = yield* Effect.raceFirst(Effect.as(here.died, true), Effect.as(there.died, false))
          const [left, at] = isHere ? [there, other] : [here, story]
          yield* left.dieAt("task.afterCommit", 1)

          expect((yield* say(at, "talk", "Two")).status).toBe(204)
          const held = yield* wholeLog(at, "talk")
          expect(typesOf(held).slice(-3)).toEqual([
            "UserMessageEvent",
            "AgentTurnStartedEvent",
            "UserMessageEvent"
          ])
          expect(held.at(-1).parentEventId).toBe(held.at(-2).id)
          expect((yield* at.get("/runs")).items).toMatchObject([{ status: "running", attempt: 1 }])

          yield* ask(access, "update kb.agent_runs set lease_expires_at = now() where status = 'running'")
          const log = yield* restingLog(at, "talk")
          expectOneLine("talk", log)
          expectTurnsWhole(log)
          expect(log.slice(0, held.length)).toEqual(held)
          expect(log.slice(held.length)).toMatchObject([
            { type: "AgentTurnInterruptedEvent", turnNumber: 1, reason: "crash" },
            { type: "SessionEndedEvent", reason: "crash" },
            { type: "SessionStartedEvent" },
            { type: "AgentTurnStartedEvent", turnNumber: 2 },
            { type: "AssistantMessageEvent", content: "Answer 2: Two" },
            { type: "AgentTurnCompletedEvent", turnNumber: 2 }
          ])
          expect((yield* at.get("/runs")).items).toMatchObject([{ status: "completed", attempt: 2 }])
        }),
      patienceMs
    )
  })
})

describe("Crash: a conversation whose server is killed", () => {
  it.live(
    "S004-R39, R40, R41, R42 between a message and its turn, and in the turn: a turn comes after it, and a session that a death broke off has its end",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const first = yield* startMortal(access)
          const story = yield* newProject(first, access)
          yield* newContext(story, "talk", echo)
          const second = yield* prepareMortal(access)
          yield* first.dieAt("run.afterDebounce", 1)
          const kept = yield* speakUntilDead(story, "talk")
          yield* first.died

          const next = yield* second
          const there = storyIn(next, access, story.projectId)
          yield* restingLog(there, "talk")
          const third = yield* prepareMortal(access)
          yield* next.dieAt("run.afterTurnStarted", 1)
          expect((yield* answeredFirst(there, "talk", "Two")).status).toBe(204)
          yield* next.died

          const last = storyIn(yield* third, access, story.projectId)
          const log = yield* restingLog(last, "talk")
          expectOneLine("talk", log)
          expectTurnsWhole(log)
          const said = contentsOf(log, "UserMessageEvent")
          expect(kept.filter((message) => !said.includes(message))).toEqual([])
          const crashed = { type: "SessionEndedEvent", reason: "crash" }
          const begins = { type: "SessionStartedEvent" }
          // On a slow day a turn was answered before the first server died.
          const acts = log.filter(({ type }) => type !== "UserMessageEvent")
          const death = acts.findIndex(({ reason }) => reason === "crash")
          expect(acts[0]).toMatchObject(begins)
          const before = countOf(acts.slice(0, death), "AgentTurnStartedEvent")
          expect(acts.slice(death)).toMatchObject([
            // The first server died here, before a turn.
            crashed,
            begins,
            { type: "AgentTurnStartedEvent", turnNumber: before + 1 },
            { type: "AssistantMessageEvent", content: `Answer ${said.length - 1}: ${said.at(-2)}` },
            { type: "AgentTurnCompletedEvent", turnNumber: before + 1 },
            { type: "AgentTurnStartedEvent", turnNumber: before + 2 },
            // The second server died here, in the turn.
            { type: "AgentTurnInterruptedEvent", turnNumber: before + 2, reason: "crash" },
            crashed,
            begins,
            { type: "AgentTurnStartedEvent", turnNumber: before + 3 },
            { type: "AssistantMessageEvent", content: `Answer ${said.length}: Two` },
            { type: "AgentTurnCompletedEvent", turnNumber: before + 3 }
          ])
          expect(countOf(log, "SessionStartedEvent")).toBe(countOf(log, "SessionEndedEvent") + 1)
          expect(countOf(acts.slice(death), "SessionEndedEvent")).toBe(2)
          expect(acts.slice(death).filter(({ reason }) => reason === "crash")).toHaveLength(3)
          expect((yield* last.get("/verify")).differences).toEqual([])
        })
      ),
    patienceMs
  )
})

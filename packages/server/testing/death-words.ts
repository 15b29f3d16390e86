/**
 * The words in which stories tell of a run whose server is killed while it works.
 *
 * Real processes, real `kill -9`, a real foreign server. Each life first ends the
 * run that the one before died over, and then dies over a run of its own. The
 * next one is loaded meanwhile, so that a death costs little more than its run.
 */
import { expect } from "@effect/vitest"
import { Clock, Effect, type Scope } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "./fresh-database.ts"
import { addServer, type Diary, newDiary } from "./mcp-words.ts"
import { type MortalServer, prepareMortal, startMortal } from "./mortal-servers.ts"
import { eventually, type Json, promptWithObject, scripted, type Story, storyIn } from "./platform.ts"
import { callsOf } from "./story-words.ts"
import { begin, runLog } from "./time-words.ts"

/** The n-th time that a run passes a point, where its server dies. */
export interface Death {
  readonly name: CrashPointName
  readonly passing: number
}

/** What came of the runs over which servers died. */
export interface DeathFigures {
  deaths: number
  /** Calls that reached the foreign server, by tool. */
  readonly calls: Record<ExternalTool, number>
  /** Calls that reached it twice, by tool. */
  readonly twice: Record<ExternalTool, number>
  /** Calls of which the model was told that nobody knows what came of them. */
  unknown: number
  /** The longest that a run needed from the start of the next server to its end, in milliseconds. */
  slowestEndMs: number
}

type ExternalTool = "charge" | "put" | "lookup"

const notes = [0, 3, 7, 8]

/** The foreign tool that is called in a step: one that may not be repeated, one that is idempotent, one that only reads. */
const foreign: ReadonlyArray<{ readonly step: number; readonly tool: ExternalTool }> = [
  { step: 1, tool: "charge" },
  { step: 2, tool: "put" },
  { step: 4, tool: "lookup" },
  { step: 5, tool: "charge" },
  { step: 6, tool: "put" }
]

/** The argument that tells a call from all others, and what it is in a step of a round. */
const marks: Record<ExternalTool, (round: number, step: number) => Record<string, unknown>> = {
  charge: (round, step) => ({ amount: round * 10 + step }),
  put: (round, step) => ({ key: `${round}.${step}` }),
  lookup: (round, step) => ({ word: `${round}.${step}` })
}

const templates: Record<ExternalTool, Record<string, unknown>> = {
  charge: { amount: "{{ input.input.round | times: 10 | plus: step }}" },
  put: { key: "{{ input.input.round }}.{{ step }}" },
  lookup: { word: "{{ input.input.round }}.{{ step }}" }
}

/** Nine calls and a last word; every call of every run has arguments of its own. */
const worker = {
  name: "worker",
  prompt: promptWithObject,
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*", "shop.*"],
  model: scripted([
    {
      when: notes.map((step) => `step == ${step}`).join(" or "),
      calls: [
        {
          tool: "create_object",
          arguments: { type: "Round{{ input.input.round }}", properties: { name: "Note {{ step }}" } }
        }
      ]
    },
    ...foreign.map(({ step, tool }) => ({
      when: `step == ${step}`,
      calls: [{ tool: `shop__${tool}`, arguments: templates[tool] }]
    })),
    { say: "Done with {{ input.input.round }}." }
  ])
}

/** What came of a run, wherever its server died over it. */
const expectDone = Effect.fnUntraced(function* (
  story: Story,
  diary: Diary,
  round: number,
  run: Json,
  figures: DeathFigures,
  death?: Death
) {
  const ended = yield* eventually(
    story.get(`/runs/${run.id}`),
    ({ completedAt }) => completedAt !== null,
    60_000
  )
  expect(ended).toMatchObject({ status: "completed", summary: `Done with ${round}.`, stepCount: 10 })
  const made = (yield* story.get(`/objects?type=Round${round}&limit=200`)).items
  expect(made.map(({ properties }: Json) => properties.name).toSorted()).toEqual(
    notes.map((step) => `Note ${step}`)
  )
  const calls = yield* callsOf(story, run)
  expect(calls).toHaveLength(9)
  yield* expectForeignCalls(diary, round, calls, figures, death)
  const log = yield* runLog(story, run)
  const outcomes = log.filter(
    ({ type }) => type === "ToolCallCompletedEvent" || type === "ToolCallFailedEvent"
  )
  expect(new Set(outcomes.map(({ callId }) => callId)).size).toBe(9)
  expect(outcomes).toHaveLength(9)
  expect(log.filter(({ type }) => type === "AgentTurnCompletedEvent")).toHaveLength(1)
})

/** How often each call reached the foreign server, beside what its record says. */
const expectForeignCalls = Effect.fnUntraced(function* (
  diary: Diary,
  round: number,
  calls: ReadonlyArray<Json>,
  figures: DeathFigures,
  death: Death | undefined
) {
  const called = yield* diary.called
  let odd = 0
  for (const [index, { step, tool }] of foreign.entries()) {
    const mark = marks[tool](round, step)
    const isIt = (call: Json) => Object.entries(mark).every(([key, value]) => call.arguments[key] === value)
    const times = called.filter((call) => call.tool === tool && isIt(call)).length
    const { status } = calls.find(isIt)
    const isStruck = death?.passing === index + 1
    if (isStruck && death.name === "run.beforeForeignCall")
      expect({ tool, times, status }).toEqual(
        tool === "charge" ? { tool, times: 0, status: "unknown" } : { tool, times: 1, status: "completed" }
      )
    else if (isStruck && death.name === "run.afterForeignCall")
      expect({ tool, times, status }).toEqual(
        tool === "charge" ? { tool, times: 1, status: "unknown" } : { tool, times: 2, status: "completed" }
      )
    else if (tool === "charge") {
      // Where nobody can know, the model was told so; it was not charged again.
      expect(["completed", "unknown"]).toContain(status)
      expect(status === "completed" ? [1] : [0, 1]).toContain(times)
    } else {
      expect(status).toBe("completed")
      expect([1, 2]).toContain(times)
    }
    if (times !== 1 || status === "unknown") odd += 1
    figures.calls[tool] += times
    if (times > 1) figures.twice[tool] += 1
    if (status === "unknown") figures.unknown += 1
  }
  // One death strikes one call at most.
  expect(odd).toBeLessThanOrEqual(death === undefined ? 0 : 1)
})

/** Points that other loops pass too, and together: how often is not the run's to say. */
const isOfTheRun = (name: CrashPointName) => !name.startsWith("dispatch.") && !name.startsWith("release.")

/** The points that a run of ten steps passes, each with every passing. */
const deathsOf = (names: ReadonlyArray<CrashPointName>): ReadonlyArray<Death> => {
  const counts = new Map<CrashPointName, number>()
  return names.map((name) => {
    const passing = (counts.get(name) ?? 0) + 1
    counts.set(name, passing)
    return { name, passing }
  })
}

const title = ({ name, passing }: Death) => `${name} ${passing}`

/**
 * Lets a run pass once, chooses deaths among what it passed, and lets one server die of each.
 *
 * **Details** Fails with the death's name in the log where a run is not what it is without one.
 */
export const tellDeaths = Effect.fnUntraced(function* (
  transportOf: (diary: Diary) => Effect.Effect<Record<string, unknown>, never, Scope.Scope>,
  choose: (all: ReadonlyArray<Death>) => ReadonlyArray<Death>
): Effect.fn.Return<DeathFigures, never, Scope.Scope> {
  const access = yield* freshDatabase
  const diary = yield* newDiary
  let server: MortalServer = yield* startMortal(access)
  const { body: project } = yield* server.send("POST", "/api/projects", { name: "Mortal" })
  const here = () => storyIn(server, access, project.id)
  yield* addServer(here(), yield* transportOf(diary))
  const agent = yield* here().post("/agents", worker)

  const figures: DeathFigures = {
    deaths: 0,
    calls: { charge: 0, put: 0, lookup: 0 },
    twice: { charge: 0, put: 0, lookup: 0 },
    unknown: 0,
    slowestEndMs: 0
  }
  const before = server.passed().length
  const first = yield* begin(here(), agent, { round: 1 })
  yield* expectDone(here(), diary, 1, first, figures)
  const chosen = choose(deathsOf(server.passed().slice(before).filter(isOfTheRun)))

  for (const [index, death] of chosen.entries()) {
    const round = index + 2
    const next = yield* prepareMortal(access)
    yield* server.dieAt(death.name, death.passing)
    // It may die before it has answered; the run is there all the same.
    yield* Effect.exit(begin(here(), agent, { round }))
    yield* server.died
    server = yield* next
    const startedMs = yield* Clock.currentTimeMillis
    const { items } = yield* here().get("/runs?limit=200")
    const run = items.find(({ trigger }: Json) => trigger.input.round === round)
    yield* Effect.catchCause(expectDone(here(), diary, round, run, figures, death), (cause) =>
      Effect.andThen(Effect.logError(`It died at ${title(death)}`), Effect.failCause(cause))
    )
    figures.deaths += 1
    figures.slowestEndMs = Math.max(figures.slowestEndMs, (yield* Clock.currentTimeMillis) - startedMs)
  }
  return figures
})

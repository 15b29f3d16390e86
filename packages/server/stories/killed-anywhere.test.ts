/**
 * A run of ten steps whose server is killed at every point that it passes.
 *
 * Real processes, real `kill -9`, a real foreign server. Each life first ends the
 * run that the one before died over, and then dies over a run of its own.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { addServer, type Diary, newDiary, program } from "../testing/mcp-words.ts"
import { type MortalServer, startMortal } from "../testing/mortal-servers.ts"
import {
  eventually,
  type Json,
  promptWithObject,
  scripted,
  type Story,
  storyIn
} from "../testing/platform.ts"
import { callsOf } from "../testing/story-words.ts"
import { begin, runLog } from "../testing/time-words.ts"

const notes = [0, 3, 4, 7, 8]
const charges = [1, 5]
const lookups = [2, 6]

const at = (steps: ReadonlyArray<number>) => steps.map((step) => `step == ${step}`).join(" or ")

/** Nine calls and a last word; every call of every run has arguments of its own. */
const worker = {
  name: "worker",
  prompt: promptWithObject,
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*", "shop.*"],
  model: scripted([
    {
      when: at(notes),
      calls: [
        {
          tool: "create_object",
          arguments: { type: "Note", properties: { name: "{{ input.input.round }}.{{ step }}" } }
        }
      ]
    },
    {
      when: at(charges),
      calls: [
        {
          tool: "shop__charge",
          arguments: { amount: "{{ input.input.round | times: 10 | plus: step }}" }
        }
      ]
    },
    {
      when: at(lookups),
      calls: [{ tool: "shop__lookup", arguments: { word: "{{ input.input.round }}.{{ step }}" } }]
    },
    { say: "Done with {{ input.input.round }}." }
  ])
}

/** What came of a run, wherever its server died over it. */
const expectDone = Effect.fnUntraced(function* (story: Story, diary: Diary, round: number, run: Json) {
  const ended = yield* eventually(
    story.get(`/runs/${run.id}`),
    ({ completedAt }) => completedAt !== null,
    30_000
  )
  expect(ended).toMatchObject({ status: "completed", summary: `Done with ${round}.`, stepCount: 10 })
  const made = (yield* story.get("/objects?type=Note&limit=200")).items
    .map(({ properties }: Json) => properties.name)
    .filter((name: string) => name.startsWith(`${round}.`))
  expect(made.toSorted()).toEqual(notes.map((step) => `${round}.${step}`))
  const called = yield* diary.called
  const calls = yield* callsOf(story, run)
  for (const step of charges) {
    const times = called.filter(
      (call) => call.tool === "charge" && call.arguments.amount === round * 10 + step
    ).length
    const record = calls.find((call: Json) => call.arguments.amount === round * 10 + step)
    // Where nobody can know, the model was told so; it was not charged again.
    expect(["completed", "unknown"]).toContain(record.status)
    expect(record.status === "completed" ? [1] : [0, 1]).toContain(times)
  }
  for (const step of lookups)
    expect(calls.find((call: Json) => call.arguments.word === `${round}.${step}`).status).toBe("completed")
  expect(calls).toHaveLength(9)
  const log = yield* runLog(story, run)
  const outcomes = log.filter(
    ({ type }) => type === "ToolCallCompletedEvent" || type === "ToolCallFailedEvent"
  )
  expect(new Set(outcomes.map(({ callId }) => callId)).size).toBe(9)
  expect(outcomes).toHaveLength(9)
  expect(log.filter(({ type }) => type === "AgentTurnCompletedEvent")).toHaveLength(1)
})

/** How often a point was passed, by its name. */
const countsOf = (names: ReadonlyArray<CrashPointName>): ReadonlyMap<CrashPointName, number> => {
  const counts = new Map<CrashPointName, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Points that other loops pass too, and together: how often is not the run's to say. */
const isOfTheRun = (name: CrashPointName) => !name.startsWith("dispatch.") && !name.startsWith("release.")

/** The first passings of a point by each kind of call, and the last; those between are like them. */
const passingsOf = (name: CrashPointName, times: number): ReadonlyArray<number> => {
  const first = name.startsWith("tool.") || name.includes("Foreign") ? [1, 2, 3] : [1]
  return [...new Set([...first.filter((passing) => passing < times), times])]
}

describe("Crash: kill -9 at every point of a run of ten steps", () => {
  it.live(
    "each graph effect happens once, a foreign call is never made twice unless it may be, and the run ends",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const diary = yield* newDiary
          let server: MortalServer = yield* startMortal(access)
          const { body: project } = yield* server.send("POST", "/api/projects", { name: "Mortal" })
          const here = () => storyIn(server, access, project.id)
          yield* addServer(here(), program(diary))
          const agent = yield* here().post("/agents", worker)

          const before = server.passed().length
          const first = yield* begin(here(), agent, { round: 1 })
          yield* expectDone(here(), diary, 1, first)
          const counts = countsOf(server.passed().slice(before).filter(isOfTheRun))
          expect([...counts.keys()]).toEqual(
            expect.arrayContaining([
              "run.afterClaim",
              "run.afterTurnStarted",
              "run.beforeModel",
              "run.afterModel",
              "run.afterStep",
              "graph.beforeCommit",
              "tool.beforeCommit",
              "tool.afterCommit",
              "run.beforeForeignCall",
              "run.afterForeignCall",
              "run.beforeComplete",
              "run.afterComplete"
            ])
          )
          const deaths = [...counts].flatMap(([name, times]) =>
            passingsOf(name, times).map((passing) => ({ name, passing }))
          )
          expect(deaths.length).toBeGreaterThan(20)
          for (const [index, { name, passing }] of deaths.entries()) {
            const round = index + 2
            yield* server.dieAt(name, passing)
            // It may die before it has answered; the run is there all the same.
            yield* Effect.exit(begin(here(), agent, { round }))
            yield* server.died
            server = yield* startMortal(access)
            const { items } = yield* here().get("/runs?limit=200")
            const run = items.find(({ trigger }: Json) => trigger.input.round === round)
            yield* Effect.catchCause(expectDone(here(), diary, round, run), (cause) =>
              Effect.andThen(Effect.logError(`It died at the ${passing}th ${name}`), Effect.failCause(cause))
            )
          }
        })
      ),
    600_000
  )
})

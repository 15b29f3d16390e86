/**
 * How many workers may die over a run: as many as make progress, and few at one step.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { runLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { interposedServer } from "../testing/interposed.ts"
import { ask, refusingToFail } from "../testing/owner-rows.ts"
import {
  eventually,
  type Json,
  newProject,
  promptWithObject,
  scripted,
  startServer
} from "../testing/platform.ts"
import { begin } from "../testing/time-words.ts"

/** Notes one thing in each of six steps, and then says so. */
const notes = scripted([
  {
    when: "step < 6",
    calls: [{ tool: "create_object", arguments: { type: "Note", properties: { n: "{{ step }}" } } }]
  },
  { say: "Noted." }
])

/** A run over which one attempt after the other dies at the places that are named, and what lets the lease of the last run out. */
const dyingAt = Effect.fnUntraced(function* (places: ReadonlyArray<CrashPointName>) {
  const access = yield* freshDatabase
  const { doors, interpose } = yield* interposedServer(access)
  const story = yield* newProject(doors, access)
  const agent = yield* story.post("/agents", {
    name: "notes",
    prompt: "Note.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model: notes
  })
  /** Whoever passes the place next stays there for ever. */
  const dying = Effect.fnUntraced(function* (place: CrashPointName) {
    const reached = yield* Deferred.make<void>()
    yield* interpose(place, Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
    return Deferred.await(reached)
  })
  const lapse = (run: Json, change = "") =>
    ask(
      access,
      `update kb.agent_runs set ${change} attempt_token = null, lease_expires_at = now() where id = $1 and status = 'running'`,
      [run.id]
    )
  const [first, ...others] = places
  let died = yield* dying(first ?? "run.afterClaim")
  const run: Json = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
  for (const place of others) {
    yield* died
    // Where the next one dies is known before anybody takes the run over.
    died = yield* dying(place)
    yield* lapse(run)
  }
  yield* died
  return { story, path: `/runs/${run.id}`, lapse: (change?: string) => lapse(run, change) }
})

const hasEnded = (run: Json) => run.completedAt !== null

const dead = (times: number, place: CrashPointName) => Array.from({ length: times }, () => place)

describe("A run whose workers die", () => {
  it.live(
    "goes on as long as each of them keeps a step",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const deaths = runLimits.maxAttempts + 2
          const { lapse, path, story } = yield* dyingAt(dead(deaths, "run.afterStep"))
          yield* lapse()
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "completed",
            summary: "Noted.",
            attempt: deaths + 1,
            stepCount: 7
          })
          expect((yield* story.get("/objects?type=Note")).items).toHaveLength(6)
        })
      ),
    240_000
  )

  it.live(
    "is given up where they die at one step, whatever was kept before it",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { lapse, path, story } = yield* dyingAt([
            "run.beforeModel",
            "run.afterStep",
            ...dead(runLimits.maxAttempts - 1, "run.beforeModel")
          ])
          yield* lapse()
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "failed",
            errorMessage: expect.stringMatching(new RegExp(`\\b${runLimits.maxAttempts}\\b`)),
            attempt: runLimits.maxAttempts + 1,
            stepCount: 1
          })
        })
      ),
    240_000
  )

  it.live(
    "is given up in the end, also where each of them keeps a step",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { lapse, path, story } = yield* dyingAt(["run.afterStep"])
          // As many as may die over one run have done so, each behind a step.
          const most = runLimits.maxAttemptsInAll
          yield* lapse(`attempt = ${most}, attempts_before_step = ${most - 1},`)
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "failed",
            errorMessage: expect.stringMatching(new RegExp(`\\b${runLimits.maxAttemptsInAll}\\b`))
          })
        })
      ),
    240_000
  )

  it.live("is given up by itself: one that cannot be ended keeps nobody from anything", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const story = yield* newProject(yield* startServer(access), access)
        const agent = yield* story.post("/agents", {
          name: "waiter",
          prompt: promptWithObject,
          triggerType: "manual",
          executionMode: "execute",
          tools: ["graph.*"],
          model: scripted([
            { when: 'message contains "hang"', say: "", fault: { kind: "hang" } },
            { say: "Done." }
          ])
        })
        const runOf = (run: Json) => story.get(`/runs/${run.id}`)
        const hanging = Effect.flatMap(begin(story, agent, "hang"), (run) =>
          eventually(runOf(run), ({ status }) => status === "running")
        )
        const [stuck, dead] = [yield* hanging, yield* hanging]
        const letFail = yield* refusingToFail(access, stuck.id)
        yield* ask(
          access,
          `update kb.agent_runs set attempt = $2, attempt_token = null, lease_expires_at = now()
           where project_id = $1 and status = 'running'`,
          [story.projectId, runLimits.maxAttempts]
        )
        const last = yield* begin(story, agent, "go")
        expect(yield* eventually(runOf(last), hasEnded)).toMatchObject({ status: "completed" })
        expect(yield* eventually(runOf(dead), hasEnded)).toMatchObject({
          status: "failed",
          errorMessage: expect.stringMatching(new RegExp(`\\b${runLimits.maxAttempts}\\b`))
        })
        expect(yield* runOf(stuck)).toMatchObject({ status: "running" })
        yield* letFail
        expect(yield* eventually(runOf(stuck), hasEnded)).toMatchObject({ status: "failed" })
      })
    )
  )
})

/**
 * How many workers may die over a run: as many as make progress, and few at one step.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { runLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { freezingServer } from "../testing/frozen-attempts.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted } from "../testing/platform.ts"

/** Notes one thing in each of six steps, and then says so. */
const notes = scripted([
  {
    when: "step < 6",
    calls: [{ tool: "create_object", arguments: { type: "Note", properties: { n: "{{ step }}" } } }]
  },
  { say: "Noted." }
])

/** A run over which one attempt after the other dies at the places that are named. */
const dyingAt = Effect.fnUntraced(function* (places: ReadonlyArray<CrashPointName>) {
  const access = yield* freshDatabase
  const { doors, freeze } = yield* freezingServer(access)
  const story = yield* newProject(doors, access)
  const agent = yield* story.post("/agents", {
    name: "notes",
    prompt: "Note.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model: notes
  })
  const [first, ...others] = places
  const died = freeze(first ?? "run.afterClaim", 1)
  const run: Json = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
  yield* died
  for (const place of others) yield* freeze(place, 1)
  return { access, story, run, path: `/runs/${run.id}` }
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
          const { path, story } = yield* dyingAt(dead(deaths, "run.afterStep"))
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "completed",
            summary: "Noted.",
            attempt: deaths + 1,
            stepCount: 7
          })
          expect((yield* story.get("/objects?type=Note")).items).toHaveLength(6)
        })
      ),
    90_000
  )

  it.live(
    "is given up where they die at one step, whatever was kept before it",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { path, story } = yield* dyingAt([
            "run.beforeModel",
            "run.afterStep",
            ...dead(runLimits.maxAttempts - 1, "run.beforeModel")
          ])
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "failed",
            errorMessage: `The worker died ${runLimits.maxAttempts} times during one step of this run`,
            attempt: runLimits.maxAttempts + 1,
            stepCount: 1
          })
        })
      ),
    90_000
  )

  it.live(
    "is given up in the end, also where each of them keeps a step",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { access, path, run, story } = yield* dyingAt(["run.afterStep"])
          // As many as may die over one run have done so, each behind a step.
          yield* ask(
            access,
            `update kb.agent_runs set attempt = $2, attempts_before_step = $2 - 1, lease_expires_at = now()
             where id = $1 and status = 'running'`,
            [run.id, runLimits.maxAttemptsInAll]
          )
          expect(yield* eventually(story.get(path), hasEnded, 30_000)).toMatchObject({
            status: "failed",
            errorMessage: `The worker died ${runLimits.maxAttemptsInAll} times during this run`
          })
        })
      ),
    90_000
  )
})

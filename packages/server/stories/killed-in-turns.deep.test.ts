/**
 * Two servers, one of which is killed at random instants of turns.
 *
 * The deep tier kills twice and the nightly tier forty times, with `--cluster` and without, over pairs of servers with a
 * database each.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Console, Effect, Random } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { runLimits } from "../src/limits.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type MortalServer, startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, type Story, storyIn } from "../testing/platform.ts"
import { watcher } from "../testing/story-words.ts"
import { inNight } from "../testing/tier.ts"

const pairs = inNight(4, 1)
const killsOfPair = inNight(10, 2)

/** Runs that each server is given before a kill. */
const runsOfServer = 3

const stepMs = 2_000
const steps = 5

/** A lease that was extended just before the kill, and 5 s to notice and to begin the next attempt. */
const withinMs = runLimits.leaseMs + 5_000

/** An agent of several slow steps. */
const traveller = watcher({
  name: "traveller",
  triggerType: "manual",
  reactionConfig: null,
  repeatableTools: ["graph.search_objects"],
  model: scripted([
    {
      when: `step < ${steps}`,
      say: "Step {{ step }}.",
      latencyMs: stepMs,
      calls: [{ tool: "search_objects", arguments: { type: "Place" } }]
    },
    { say: "I have seen it all." }
  ])
})

const start = (access: PostgresAccess, isCluster: boolean) =>
  isCluster ? Effect.flatMap(freeAddress, (at) => startMortal(access, at)) : startMortal(access)

/** The runs of a server, by its worker's name. */
const workOf = (access: PostgresAccess, worker: string) =>
  ask(access, "select id, attempt from kb.agent_runs where status = 'running' and worker_id = $1", [worker])

/** Begins runs at a server, again and again until a look satisfies. */
const beginUntil = <A>(
  story: Story,
  agent: Json,
  look: Effect.Effect<A>,
  satisfies: (seen: A) => boolean
) => {
  const begin = Effect.forEach(Array.from({ length: runsOfServer }), () =>
    story.post(`/agents/${agent.id}/trigger?wait=false`, {})
  )
  return eventually(Effect.andThen(begin, look), satisfies, 60_000, [300, 300])
}

/** The worker's name of a server that has just been started: the one not seen before. */
const workerOf = (story: Story, agent: Json, known: ReadonlyArray<string>) => {
  const unknown = ask(
    story.access,
    "select worker_id from kb.agent_runs where status = 'running' and not worker_id = any($1::text[])",
    [known]
  )
  return Effect.map(
    beginUntil(story, agent, unknown, ({ length }) => length > 0),
    ([row]) => String(row?.[0])
  )
}

/** Waits until another attempt has begun at each of these runs, and answers how long that took. */
const movedOn = Effect.fnUntraced(function* (
  access: PostgresAccess,
  left: ReadonlyArray<ReadonlyArray<unknown>>
) {
  const fromMs = yield* Clock.currentTimeMillis
  const still = ask(
    access,
    `select from kb.agent_runs run join jsonb_to_recordset($1::text::jsonb) as left_one(id uuid, attempt int)
       on run.id = left_one.id and run.attempt = left_one.attempt where run.status in ('running', 'queued')`,
    [JSON.stringify(left.map(([id, attempt]) => ({ id, attempt })))]
  )
  yield* eventually(still, ({ length }) => length === 0, 2 * withinMs)
  return (yield* Clock.currentTimeMillis) - fromMs
})

/** Kills the older of two servers again and again, and answers how long each takeover of its runs took. */
const killing = Effect.fnUntraced(function* (isCluster: boolean) {
  const access = { ...(yield* freshDatabase), embedded: false }
  const first = yield* start(access, isCluster)
  const { projectId, ...story } = yield* newProject(first, access)
  const agent = yield* story.post("/agents", traveller)
  const known: Array<string> = []
  const named = Effect.fnUntraced(function* (server: MortalServer) {
    const here = storyIn(server, access, projectId)
    const worker = yield* workerOf(here, agent, known)
    known.push(worker)
    return { here, server, worker }
  })
  let older = yield* named(first)
  let younger = yield* named(yield* start(access, isCluster))
  const figures: Array<number> = []
  for (let kill = 0; kill < killsOfPair; kill++) {
    const work = workOf(access, older.worker)
    yield* beginUntil(older.here, agent, work, ({ length }) => length > 0)
    // In the middle of a turn, at any instant of its steps.
    const killAtMs =
      (yield* Clock.currentTimeMillis) + (yield* Random.nextIntBetween(0, stepMs * (steps - 1)))
    yield* eventually(Clock.currentTimeMillis, (nowMs) => nowMs >= killAtMs)
    if ((yield* work).length === 0) yield* beginUntil(older.here, agent, work, ({ length }) => length > 0)
    yield* older.server.kill
    yield* older.server.died
    const left = yield* work
    // A kill may come in the moment between two runs: it shows nothing.
    if (left.length > 0) figures.push(yield* movedOn(access, left))
    older = younger
    younger = yield* named(yield* start(access, isCluster))
  }
  const ended = yield* eventually(
    ask(access, "select status, count(*)::int, max(attempt)::int from kb.agent_runs group by status"),
    (rows) => rows.every(([status]) => status !== "running" && status !== "queued"),
    120_000
  )
  return { ended, figures }
})

describe("Two servers, one of which is killed in the middle of turns", () => {
  for (const isCluster of [false, true])
    it.live(
      `every run goes on within the lease and 5 s, ${isCluster ? "with" : "without"} --cluster`,
      () =>
        Effect.gen(function* () {
          const told = yield* Effect.forEach(
            Array.from({ length: pairs }),
            () => Effect.scoped(killing(isCluster)),
            { concurrency: pairs }
          )
          const figures = told.flatMap((one) => one.figures).toSorted((a, b) => a - b)
          const median = figures[Math.floor(figures.length / 2)]
          yield* Console.log(
            `${figures.length} kills ${isCluster ? "with" : "without"} --cluster: median ${median} ms, worst ${figures.at(-1)} ms`
          )
          expect(figures.length).toBeGreaterThanOrEqual((pairs * killsOfPair) / 2)
          expect(figures.filter((ms) => ms > withinMs)).toEqual([])
          const ended = told.flatMap((one) => one.ended)
          expect(ended.map(([status]) => status)).toEqual(told.map(() => "completed"))
          for (const [, , attempts] of ended) expect(attempts).toBeGreaterThan(1)
        }),
      inNight(1_800_000, 300_000)
    )
})

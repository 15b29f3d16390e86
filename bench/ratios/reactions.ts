/**
 * Reactions beside the jobs of queues: how soon one begins, how many are done in a second, how fast a backlog drains.
 *
 * Tropism is sent an object through HTTP, and a run of the scripted model comes
 * of it; a queue is given a job that does nothing. So a queue is told what is to
 * be done where Tropism finds it out, which no ratio here makes up for.
 */
import { type Json, newProject, nowMs, patienceMs, until, withHands, atRate } from "../doors.ts"
import { quantile } from "../figures.ts"
import type { Bound, Measured, Prepared, Subject, Units } from "./comparison.ts"
import type { Program } from "./programs.ts"
import type { Stage } from "./stage.ts"
import { importObjects } from "./starts.ts"

const begins = "event → begun, p50"
const narrow = "reactions or jobs, one for an event"
const wide = "reactions or jobs, ten for an event"
const drains = "a backlog drains"

export const reactionUnits: Units = { [begins]: "ms", [narrow]: "/s", [wide]: "/s", [drains]: "/s" }

const hands = 16

/** When something came to an end is read from its record, so looking for it may be rare. */
const lookEveryMs = 100

const wakingType = "Order"

/** An agent that reacts to what the bench writes. */
export const listener = (number: number) => ({
  name: `reacts-${number}`,
  prompt: "Look at it.",
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  maxPendingRuns: 100_000,
  reactionConfig: { objectTypes: [wakingType], events: ["created"] },
  model: { provider: "scripted", name: "bench", script: { rules: [{ say: "Seen." }] } }
})

/** A project of the bench's. */
export interface World {
  readonly id: string
  readonly path: string
}

const newWorld = async ({ send }: Stage, agents: number): Promise<World> => {
  const world = await newProject(send)
  for (let number = 0; number < agents; number++) await send("POST", `${world.path}/agents`, listener(number))
  return world
}

/** Runs of a project that have come to rest, and how many of them did not complete. */
export const restedRuns = async ({ rows }: Stage, { id }: World) => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ rested: number; completed: number; broken: number; lastMs: number }>(
      `select count(*) filter (where status not in ('queued', 'running'))::int as rested,
         count(*) filter (where status = 'completed')::int as completed,
         count(*) filter (where status in ('failed', 'cancelled', 'paused'))::int as broken,
         extract(epoch from max(completed_at))::float8 * 1000 as last_ms
       from kb.agent_runs where project_id = $1`,
      [id]
    )
  )
  return row ?? { rested: 0, completed: 0, broken: 0, lastMs: 0 }
}

/** Waits until so many runs more have completed and answers when the last did. */
const restOf = async (stage: Stage, world: World, expected: number): Promise<number> => {
  const rested = await until(
    () => restedRuns(stage, world),
    ({ broken, rested }) => broken > 0 || rested >= expected,
    `Not all of ${expected} reactions completed`,
    lookEveryMs
  )
  if (rested.broken > 0) throw new Error(`${rested.broken} runs did not complete`)
  return rested.lastMs
}

const writeOne = async ({ send }: Stage, { path }: World): Promise<string> =>
  (await send("POST", `${path}/objects`, { type: wakingType, properties: {} })).id

/** The median of how long after its event was sent each run began, at a steady rate. */
export const measureBegins = async (stage: Stage, world: World): Promise<number> => {
  const { perSecond, steadyEvents } = stage.scale
  const sent = new Map<string, number>()
  const { rested } = await restedRuns(stage, world)
  await atRate(perSecond, steadyEvents, async () => {
    const begun = nowMs()
    sent.set(await writeOne(stage, world), begun)
  })
  await restOf(stage, world, rested + steadyEvents)
  const starts = await stage.rows.ask((sql) =>
    sql.unsafe<{ objectId: string; startedMs: number }>(
      `select trigger->'events'->0->>'objectId' as object_id, extract(epoch from started_at)::float8 * 1000 as started_ms
       from kb.agent_runs where project_id = $1 order by created_at desc limit $2`,
      [world.id, steadyEvents]
    )
  )
  return quantile(
    starts.map(({ objectId, startedMs }) => startedMs - (sent.get(objectId) ?? Number.NaN)),
    0.5
  )
}

/** Runs completed in a second, while events are written as fast as the server takes them. */
const measureRate = async (stage: Stage, world: World, events: number, fanOut: number): Promise<number> => {
  const { rested } = await restedRuns(stage, world)
  const begun = nowMs()
  await withHands(hands, { ms: patienceMs, times: events }, async () => void (await writeOne(stage, world)))
  const last = await restOf(stage, world, rested + events * fanOut)
  return (events * fanOut * 1_000) / (last - begun)
}

/** Runs completed in a second of those that waited while a kill switch was on. */
const measureDrain = async (stage: Stage, world: World): Promise<number> => {
  const { rows, scale, send, server } = stage
  const { rested } = await restedRuns(stage, world)
  await send("PUT", `${world.path}/kill-switch`, { stopped: true, reason: "A backlog is made" })
  await importObjects(server, world.path, wakingType, scale.backlog)
  await until(
    () =>
      rows.ask((sql) =>
        sql.unsafe<{ count: number }>(
          "select count(*)::int as count from kb.agent_processing_log where project_id = $1 and status = 'pending'",
          [world.id]
        )
      ),
    ([row]) => (row?.count ?? 0) >= scale.backlog,
    "Not every event waits"
  )
  const begun = nowMs()
  await send("PUT", `${world.path}/kill-switch`, { stopped: false })
  const last = await restOf(stage, world, rested + scale.backlog)
  return (scale.backlog * 1_000) / (last - begun)
}

const tropism = async (stage: Stage): Promise<Subject> => {
  const { narrow: few, wide: many } = stage.scale
  const one = await newWorld(stage, 1)
  const ten = await newWorld(stage, 10)
  const behind = await newWorld(stage, 1)
  return {
    name: "Tropism",
    measure: async (): Promise<Measured> => ({
      [begins]: await measureBegins(stage, one),
      [narrow]: await measureRate(stage, one, few, 1),
      [wide]: await measureRate(stage, ten, many, 10),
      [drains]: await measureDrain(stage, behind)
    })
  }
}

/** A queue of jobs: one instance of its program works and another adds. */
const queue = (
  { scale }: Stage,
  name: string,
  worker: Program,
  adder: Program,
  mode?: "plain" | "tuned"
): Subject => {
  const doneOf = (jobs: number) =>
    until(
      () => worker.act("done"),
      ({ done }: Json) => done >= jobs,
      `${name} did not do all of ${jobs} jobs`
    )
  const rate = async (events: number, fanOut: number) => {
    await worker.act("start", { mode })
    const begun = await adder.act("add", { events, fanOut, hands })
    const { lastMs } = await doneOf(events * fanOut)
    await worker.act("rest")
    return (events * fanOut * 1_000) / (lastMs - begun)
  }
  const begin = async () => {
    await worker.act("start", { mode })
    await adder.act("add", { events: scale.steadyEvents, fanOut: 1, perSecond: scale.perSecond })
    await doneOf(scale.steadyEvents)
    return quantile((await worker.act("rest")).latencies, 0.5)
  }
  const drain = async () => {
    await adder.act("add", { events: scale.backlog / 10, fanOut: 10, hands })
    const begun = await worker.act("start", { mode })
    const { lastMs } = await doneOf(scale.backlog)
    await worker.act("rest")
    return (scale.backlog * 1_000) / (lastMs - begun)
  }
  return {
    name,
    measure: async () => ({
      [begins]: await begin(),
      [narrow]: await rate(scale.narrow, 1),
      [wide]: await rate(scale.wide, 10),
      [drains]: await drain()
    })
  }
}

const ours = (figure: string) => ({ subject: "Tropism", figure })
const theirs = (figure: string) => ({ subject: "graphile-worker", figure })
const tuned = (figure: string) => ({ subject: "graphile-worker, tuned", figure })

const bounds: ReadonlyArray<Bound> = [
  { of: ours(begins), against: theirs(begins), most: 1.5 },
  { of: ours(narrow), against: theirs(narrow), least: 1 },
  { of: ours(wide), against: theirs(wide), least: 1 },
  { of: ours(narrow), against: tuned(narrow), least: 1, isAim: true },
  { of: ours(wide), against: tuned(wide), least: 1, isAim: true },
  { of: ours(drains), least: 2_420 }
]

export const prepareReactions = async (stage: Stage): Promise<Prepared> => {
  const [graphile, graphileAdder] = [
    await stage.startPeer("graphile-worker"),
    await stage.startPeer("graphile-worker")
  ]
  const [boss, bossAdder] = [await stage.startPeer("pg-boss"), await stage.startPeer("pg-boss")]
  const subjects = [
    await tropism(stage),
    queue(stage, "graphile-worker", graphile, graphileAdder, "plain"),
    queue(stage, "graphile-worker, tuned", graphile, graphileAdder, "tuned"),
    queue(stage, "pg-boss, tuned", boss, bossAdder)
  ]
  const programs = [graphile, graphileAdder, boss, bossAdder]
  return { subjects, bounds, close: async () => void (await Promise.all(programs.map(({ stop }) => stop()))) }
}

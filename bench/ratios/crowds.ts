/**
 * What costs nothing because it is not looked at: ten thousand agents of which one matches, and a long queue.
 *
 * The queue's rows are copied from one run in the tables, for to live through
 * them would take minutes; everything else comes through HTTP.
 */
import { newProject, patienceMs, withHands } from "../doors.ts"
import type { Bound, Prepared, Subject, Units } from "./comparison.ts"
import { listener, measureBegins, restedRuns, type World } from "./reactions.ts"
import type { Stage } from "./stage.ts"

const begins = "event → begun beside other agents, p50"
const works = "runs completed out of a queue"

export const crowdUnits: Units = { [begins]: "ms", [works]: "/s" }

const alone = "one agent"
const crowded = "10,000 agents"
const short = "10,000 queued runs"
const long = "100,000 queued runs"

const bounds: ReadonlyArray<Bound> = [
  { of: { subject: crowded, figure: begins }, against: { subject: alone, figure: begins }, most: 1.3 },
  { of: { subject: short, figure: works }, against: { subject: long, figure: works }, most: 1.3 }
]

/** A project in which one agent listens to what is written and the others to things that nobody writes. */
const newCrowd = async ({ send }: Stage, agents: number): Promise<World> => {
  const world = await newProject(send)
  await send("POST", `${world.path}/agents`, listener(0))
  await withHands(8, { ms: patienceMs, times: agents - 1 }, async (number) => {
    const other = { objectTypes: [`Other${number}`], events: ["created"] }
    await send("POST", `${world.path}/agents`, { ...listener(number + 1), reactionConfig: other })
  })
  return world
}

const stop = ({ send }: Stage, { path }: World): Promise<unknown> =>
  send("PUT", `${path}/kill-switch`, { stopped: true, reason: "The bench has looked" })

const letGo = ({ send }: Stage, { path }: World): Promise<unknown> =>
  send("PUT", `${path}/kill-switch`, { stopped: false })

/** A project that is stopped, with so many runs of one agent in its queue. */
const newQueue = async (stage: Stage, runs: number): Promise<World> => {
  const { rows, send } = stage
  const world = await newProject(send)
  const { id: agentId } = await send("POST", `${world.path}/agents`, {
    name: "queued",
    prompt: "Answer.",
    triggerType: "manual",
    tools: [],
    model: { provider: "scripted", name: "bench", script: { rules: [{ say: "Yes." }] } }
  })
  const { id } = await send("POST", `${world.path}/agents/${agentId}/trigger`, {})
  await stop(stage, world)
  await rows.alone([
    `create temporary table queue on commit drop as select uuidv7() as id from generate_series(1, ${runs})`,
    `insert into kb.contexts (project_id, name, agent_id) select '${world.id}', 'run-' || id, '${agentId}' from queue`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, user_id, context_name, root_event_id, depth, priority)
     select queue.id, project_id, agent_id, agent_version, 'queued', trigger, user_id, 'run-' || queue.id, root_event_id, depth, priority
     from kb.agent_runs run, queue where run.id = '${id}'`
  ])
  await rows.alone(["analyze kb.agent_runs", "analyze kb.contexts"])
  return world
}

/** Lets a queue go for a while and answers how many runs were completed in a second. */
const measureWorks = async (stage: Stage, world: World): Promise<number> => {
  const before = await restedRuns(stage, world)
  const begun = performance.now()
  await letGo(stage, world)
  await Bun.sleep(stage.scale.worksMs)
  // What completes while a long queue is counted is not counted.
  const elapsedMs = performance.now() - begun
  const after = await restedRuns(stage, world)
  await stop(stage, world)
  return ((after.completed - before.completed) * 1_000) / elapsedMs
}

export const prepareCrowds = async (stage: Stage): Promise<Prepared> => {
  const { scale } = stage
  const subjectOf = (name: string, figure: string, measure: () => Promise<number>): Subject => ({
    name,
    measure: async () => ({ [figure]: await measure() })
  })
  const one = await newCrowd(stage, 1)
  const many = await newCrowd(stage, scale.crowd)
  const lots = await newQueue(stage, scale.longQueue)
  return {
    subjects: [
      subjectOf(alone, begins, () => measureBegins(stage, one)),
      subjectOf(crowded, begins, () => measureBegins(stage, many)),
      // A new one each time: it must not run dry.
      subjectOf(short, works, async () => measureWorks(stage, await newQueue(stage, scale.shortQueue))),
      subjectOf(long, works, () => measureWorks(stage, lots))
    ],
    bounds,
    close: () => Promise.resolve()
  }
}

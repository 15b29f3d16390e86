/**
 * A kept step of a run beside one plain commit, a step of LangGraph, of DBOS and of Mastra.
 *
 * A step is one request to a model without latency and one call of a tool, each
 * kept before the next begins, but for Mastra's, which are kept some at a time.
 * In DBOS that is one durable step or two, as its author likes; both are shown,
 * and the bound is held against one.
 */
import { newProject } from "../doors.ts"
import { quantile } from "../figures.ts"
import { stepper } from "../stepper.ts"
import type { Bound, Prepared, Subject, Units } from "./comparison.ts"
import type { Stage } from "./stage.ts"

const kept = "a kept step"
const tenth = "the 10th step"
const last = "the 200th step"

export const keptStepUnits: Units = { [kept]: "ms", [tenth]: "ms", [last]: "ms" }

interface Times {
  readonly beganMs: number
  readonly endedMs: number
  /** When each answer of the model was kept. */
  readonly answeredMs: ReadonlyArray<number>
}

/** Runs an agent to its end and reads from its record when what was kept. */
const runThrough = async ({ rows, send }: Stage, path: string, agentId: string): Promise<Times> => {
  const { id, status } = await send("POST", `${path}/agents/${agentId}/trigger`, {})
  if (status !== "completed") throw new Error(`The bench's run is ${status}`)
  const [run] = await rows.ask((sql) =>
    sql.unsafe<{ beganMs: number; endedMs: number }>(
      `select extract(epoch from started_at)::float8 * 1000 as began_ms, extract(epoch from completed_at)::float8 * 1000 as ended_ms
       from kb.agent_runs where id = $1`,
      [id]
    )
  )
  const answers = await rows.ask((sql) =>
    sql.unsafe<{ ms: number }>(
      `select extract(epoch from created_at)::float8 * 1000 as ms from kb.context_events
       where context_name = $1 and type = 'AssistantMessageEvent' order by number`,
      [`run-${id}`]
    )
  )
  return { ...(run ?? { beganMs: 0, endedMs: 0 }), answeredMs: answers.map(({ ms }) => ms) }
}

/** The mean of the steps around one, so that no single commit decides. */
const stepNear = ({ answeredMs }: Times, step: number): number => {
  const from = Math.max(0, step - 6)
  const to = Math.min(answeredMs.length - 1, step + 5)
  return ((answeredMs[to] ?? Number.NaN) - (answeredMs[from] ?? Number.NaN)) / (to - from)
}

const tropism = async (stage: Stage): Promise<Subject> => {
  const { manySteps, steps, times } = stage.scale
  const { path } = await newProject(stage.send)
  const { id: short } = await stage.send("POST", `${path}/agents`, stepper("short", steps))
  const { id: long } = await stage.send("POST", `${path}/agents`, stepper("long", manySteps))
  return {
    name: "Tropism",
    measure: async () => {
      const each: Array<number> = []
      for (let time = 0; time < times; time++) {
        const { beganMs, endedMs } = await runThrough(stage, path, short)
        each.push((endedMs - beganMs) / steps)
      }
      const whole = await runThrough(stage, path, long)
      return {
        [kept]: quantile(each, 0.5),
        [tenth]: stepNear(whole, 10),
        [last]: stepNear(whole, manySteps - 6)
      }
    }
  }
}

/** Who is measured as well, by program and what it is told to do. */
const peers = [
  { name: "plain commit", program: "plain-pg", act: "steps" },
  { name: "LangGraph", program: "langgraph", act: "steps" },
  { name: "DBOS", program: "dbos", act: "steps" },
  { name: "DBOS, request and call", program: "dbos", act: "pairs" },
  { name: "Mastra", program: "mastra", act: "steps" }
] as const

const ours = { subject: "Tropism", figure: kept }

const bounds: ReadonlyArray<Bound> = [
  { of: ours, against: { subject: "plain commit", figure: kept }, most: 4 },
  { of: ours, against: { subject: "LangGraph", figure: kept }, most: 0.2 },
  { of: ours, against: { subject: "DBOS", figure: kept }, most: 0.75 },
  { of: { subject: "Tropism", figure: last }, against: { subject: "Tropism", figure: tenth }, most: 1.2 }
]

export const prepareKeptSteps = async (stage: Stage): Promise<Prepared> => {
  const { steps, times } = stage.scale
  const names = [...new Set(peers.map(({ program }) => program))]
  const programs = new Map<string, Awaited<ReturnType<Stage["startPeer"]>>>()
  for (const name of names) programs.set(name, await stage.startPeer(name))
  const subjects = peers.map(({ act, name, program }): Subject => ({
    name,
    measure: async () => ({ [kept]: await programs.get(program)?.act(act, { steps, times }) })
  }))
  return {
    subjects: [await tropism(stage), ...subjects],
    bounds,
    close: async () => void (await Promise.all([...programs.values()].map(({ stop }) => stop())))
  }
}

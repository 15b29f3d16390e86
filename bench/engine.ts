/**
 * What a step of a run costs: in memory, kept, the first and the thousandth, and what a run weighs.
 *
 * One step is one model request and one call of a tool that finds nothing. The
 * model is the scripted one without latency, so all time is the engine's, the
 * database's and that of a prompt which grows with each step.
 */
import { newProject, until } from "./doors.ts"
import { measureLastPrompt } from "./last-prompt.ts"
import type { AttemptContext } from "./measures.ts"
import { following, knowing, workInMemory } from "./pure-loop.ts"
import { stepper, stepsOf } from "./stepper.ts"

/** A model that is asked and does not answer while the bench looks. */
const sleeper = {
  name: "sleeper",
  prompt: "Sleep.",
  triggerType: "manual",
  tools: [],
  maxPendingRuns: 10_000,
  model: { provider: "scripted", name: "bench", script: { rules: [{ latencyMs: 600_000, say: "Done." }] } }
}

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

/** Steps of both ends of a run that are compared; the very first are left out, as they connect and plan. */
const endsOf = (steps: ReadonlyArray<number>) => {
  const width = Math.max(1, Math.floor(steps.length / 20))
  return { first: mean(steps.slice(width, 2 * width)), last: mean(steps.slice(-width)) }
}

const reportEnds = ({ report, size }: AttemptContext, name: string, steps: ReadonlyArray<number>) => {
  const { first, last } = endsOf(steps)
  const count = size.steps.toLocaleString("en")
  report({ name: `${name}, near its first`, load: `a run of ${count} steps`, value: first, unit: "ms" })
  report({
    name: `${name}, near its last`,
    load: `a run of ${count} steps`,
    value: last,
    unit: "ms",
    beside: { name: "near its first", value: first }
  })
}

/** Processor time of the server and of PostgreSQL when a run had come so far. */
interface Mark {
  readonly steps: number
  readonly server: number
  readonly postgres: number
}

/** Triggers a run, follows it to its end and answers how long each step took, by the times in its log, and what it took from the processor. */
const runThrough = async ({ rows, send, server }: AttemptContext, path: string, agentId: string) => {
  const { id } = await send("POST", `${path}/agents/${agentId}/trigger?wait=false`, {})
  const marks: Array<Mark> = []
  const look = async () => {
    const [run] = await rows.ask((sql) =>
      sql.unsafe<{ status: string; steps: number }>(
        "select status, step_count as steps from kb.agent_runs where id = $1",
        [id]
      )
    )
    marks.push({ steps: run?.steps ?? 0, ...(await server.cpuMs()) })
    return run?.status
  }
  const isOver = (status: string | undefined) => status !== "queued" && status !== "running"
  const ended = await until(look, isOver, "The bench's run did not end", 50)
  if (ended !== "completed") throw new Error(`The bench's run is ${ended}`)
  const times = await rows.ask((sql) =>
    sql.unsafe<{ ms: number; inputTokens: number }>(
      `select extract(epoch from created_at)::float8 * 1000 as ms, (payload->'usage'->>'inputTokens')::int as input_tokens
       from kb.context_events where context_name = $1 and type = 'AssistantMessageEvent' order by number`,
      [`run-${id}`]
    )
  )
  return {
    steps: times.slice(1).map(({ ms }, index) => ms - (times[index]?.ms ?? Number.NaN)),
    marks,
    lastInputTokens: times.at(-1)?.inputTokens ?? Number.NaN
  }
}

/** Processor milliseconds of a step in the first and in the last fifth of a run. */
const reportTime = (
  { report, size }: AttemptContext,
  name: string,
  marks: ReadonlyArray<Mark>,
  of: (mark: Mark) => number
): void => {
  const perStep = (from: Mark | undefined, to: Mark | undefined): number =>
    from && to && to.steps > from.steps ? (of(to) - of(from)) / (to.steps - from.steps) : 0
  const total = marks.at(-1)?.steps ?? 0
  const begun = marks.find(({ steps }) => steps > 0)
  const early = marks.findLast(({ steps }) => steps <= Math.max(total / 5, (begun?.steps ?? 0) + 1))
  const late = marks.find(({ steps }) => steps >= total * 0.8)
  const [first, last] = [perStep(begun, early), perStep(late, marks.at(-1))]
  const load = `a run of ${size.steps.toLocaleString("en")} steps`
  report({ name: `${name}, first fifth`, load, value: first, unit: "ms" })
  const beside = { name: "first fifth", value: first }
  report({ name: `${name}, last fifth`, load, value: last, unit: "ms", ...(first > 0 ? { beside } : {}) })
}

const measureSteps = async (bench: AttemptContext): Promise<void> => {
  const { report, send, size } = bench
  const load = `a run of ${size.steps.toLocaleString("en")} steps`
  // The first run of each kind is Bun compiling what it runs.
  await workInMemory(await following(stepsOf(size.steps)))
  const alone = (await workInMemory(knowing(size.steps))).durations
  reportEnds(bench, "a step in memory, decide and fold alone", alone)
  const asked = (await workInMemory(await following(stepsOf(size.steps)))).durations
  reportEnds(bench, "a step in memory, with the scripted model", asked)
  await measureLastPrompt(report, size.steps)

  const { path } = await newProject(send)
  const { id: warm } = await send("POST", `${path}/agents`, stepper("warms-up", Math.ceil(size.steps / 4)))
  await runThrough(bench, path, warm)
  const { id } = await send("POST", `${path}/agents`, stepper("steps", size.steps))
  const { lastInputTokens, marks, steps } = await runThrough(bench, path, id)
  reportEnds(bench, "a step that is kept", steps)
  const beside = { name: "the same in memory", value: mean(asked) }
  report({ name: "a step that is kept, on average", load, value: mean(steps), unit: "ms", beside })
  reportTime(bench, "server's processor time for a step", marks, (mark) => mark.server)
  reportTime(bench, "PostgreSQL's processor time for a step", marks, (mark) => mark.postgres)
  report({ name: "tokens of the last prompt, estimated", load, value: lastInputTokens, unit: "" })
}

/** How much more the server holds with runs at work, and with runs that wait in the queue behind them. */
const measureWeight = async ({ report, rows, send, server, size }: AttemptContext): Promise<void> => {
  const { path } = await newProject(send)
  const { id } = await send("POST", `${path}/agents`, sleeper)
  const trigger = () => send("POST", `${path}/agents/${id}/trigger?wait=false`, {})
  const atWork = async (): Promise<number> => {
    const [row] = await rows.ask((sql) =>
      sql.unsafe<{ count: number }>(
        "select count(*)::int as count from kb.agent_runs where agent_id = $1 and status = 'running'",
        [id]
      )
    )
    return row?.count ?? 0
  }
  // One run first, so that what is loaded once is not counted as a run's.
  await trigger()
  await until(atWork, (count) => count >= 1, "The first run is not at work")
  const none = await server.heapBytes()
  for (let n = 1; n < size.heldRuns; n++) await trigger()
  await until(atWork, (count) => count >= size.heldRuns, `Not all of ${size.heldRuns} runs are at work`)
  const held = await server.heapBytes()
  for (let n = 0; n < size.queuedRuns; n++) await trigger()
  const queued = await server.heapBytes()
  const kib = 1_024
  report({
    name: "memory of a run at work",
    load: `${size.heldRuns} runs in a model request`,
    value: Math.max(0, (held - none) / (size.heldRuns - 1) / kib),
    unit: "KiB"
  })
  report({
    name: "memory of a run that waits",
    load: `${size.queuedRuns.toLocaleString("en")} runs in the queue`,
    value: Math.max(0, (queued - held) / size.queuedRuns / kib),
    unit: "KiB"
  })
  await send("PUT", `${path}/kill-switch`, { stopped: true, reason: "The bench has looked" })
}

export const measureEngine = async (bench: AttemptContext): Promise<void> => {
  await measureSteps(bench)
  await measureWeight(bench)
}

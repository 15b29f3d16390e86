/**
 * What is measured of one server, each in a project of its own.
 *
 * Every load is bounded in time or in number, and every run that a load woke
 * must have completed before its figures are told.
 */
import { registerAgent, registerCrowd, type Work, wakingType } from "./agents.ts"
import { countRuns, reactionsOf, type Rows } from "./database.ts"
import { atRate, newProject, nowMs, patienceMs, type Send, until, withHands } from "./doors.ts"
import { quantile, type Report } from "./figures.ts"
import { makePast } from "./past.ts"
import type { ServerProcess } from "./server-process.ts"

export interface AttemptContext {
  readonly server: ServerProcess
  readonly send: Send
  readonly rows: Rows
  readonly report: Report
  /** Medians of the floor, in milliseconds. */
  readonly floor: { readonly commitMs: number; readonly commitsPerSecond16: number }
  readonly size: Size
}

/** How much of everything: a whole run, or one that only shows that the bench works. */
export interface Size {
  readonly writesMs: number
  readonly steadyPerSecond: number
  readonly steadySeconds: number
  readonly burst: number
  readonly crowds: ReadonlyArray<number>
  readonly past: number
  /** How long a server is left alone before it is looked at, and then is looked at. */
  readonly restMs: number
  readonly idleMs: number
  /** Of the run whose steps are compared. */
  readonly steps: number
  /** Runs that work at once, no more than a server's hands for one project; and runs that wait behind them. */
  readonly heldRuns: number
  readonly queuedRuns: number
  /** Contexts that were answered in; and that lie there, of which so many are read once. */
  readonly spokenContexts: number
  /** Events of the contexts that are opened, and how often each is. */
  readonly opened: ReadonlyArray<number>
  readonly opens: number
  readonly idleContexts: ReadonlyArray<number>
  readonly readContexts: number
  /** Who watch one log, and who beside them never read. */
  readonly subscribers: number
  readonly stalled: number
  /** Rounds in which servers with and without a limit take turns, and requests of one. */
  readonly limitRounds: number
  readonly limitRequests: number
}

/** Graph writes per second, with nobody who reacts, and what one costs. */
export const measureWrites = async ({ send, server, report, floor, size }: AttemptContext): Promise<void> => {
  const { path } = await newProject(send)
  for (const clients of [1, 16, 64]) {
    const load = clients === 1 ? "1 client" : `${clients} clients`
    const before = await server.cpuMs()
    const { durations, elapsedMs } = await withHands(
      clients,
      { ms: size.writesMs, times: Number.MAX_SAFE_INTEGER },
      async (number) =>
        void (await send("POST", `${path}/objects`, { type: "Plain", properties: { number } }))
    )
    const after = await server.cpuMs()
    report({
      name: "graph writes",
      load,
      value: (durations.length * 1_000) / elapsedMs,
      unit: "/s",
      beside: {
        name: "plain commits",
        value: clients === 1 ? 1_000 / floor.commitMs : floor.commitsPerSecond16
      }
    })
    report({ name: "graph write, p50", load, value: quantile(durations, 0.5), unit: "ms" })
    report({ name: "graph write, p99", load, value: quantile(durations, 0.99), unit: "ms" })
    for (const [who, ms] of [
      ["server's", after.server - before.server],
      ["PostgreSQL's", after.postgres - before.postgres]
    ] as const)
      report({
        name: `${who} processor time for a graph write`,
        load,
        value: ms / durations.length,
        unit: "ms"
      })
  }
}

interface World {
  readonly path: string
  readonly agentId: string
  readonly label: string
}

/** A project with an agent that reacts. */
const newWorld = async (bench: AttemptContext, work: Work, crowd: number, past: number): Promise<World> => {
  const { id, path } = await newProject(bench.send)
  const agentId = await registerAgent(bench.send, path, work)
  await registerCrowd(bench.send, path, 0, crowd - 1)
  if (past > 0) await makePast(bench.rows, id, agentId, past)
  const agents = `${crowd.toLocaleString("en")} agent${crowd === 1 ? "" : "s"}`
  const behind = past > 0 ? `, ${past.toLocaleString("en")} reactions behind` : ""
  return {
    path,
    agentId,
    label: `${agents}${behind}, ${work === "says one sentence" ? "1 step" : "2 steps"}`
  }
}

/** Writes objects that wake the agent, waits until it has reacted to all, and answers when each write was sent. */
const provoke = async (
  { send, rows }: AttemptContext,
  { path, agentId }: World,
  drive: (act: (number: number) => Promise<void>) => Promise<unknown>
) => {
  const before = (await countRuns(rows, agentId)).rested
  const sent = new Map<string, number>()
  await drive(async (number) => {
    const begun = nowMs()
    const { id } = await send("POST", `${path}/objects`, { type: wakingType, properties: { number } })
    sent.set(id, begun)
  })
  const { broken } = await until(
    () => countRuns(rows, agentId),
    (runs) => runs.broken > 0 || runs.rested - before >= sent.size,
    `Not all of ${sent.size} reactions completed`
  )
  if (broken > 0) throw new Error(`${broken} runs did not complete`)
  return sent
}

const startsOf = async ({ rows }: AttemptContext, { agentId }: World, sent: ReadonlyMap<string, number>) => {
  const reactions = (await reactionsOf(rows, agentId)).filter(({ objectId }) => sent.has(objectId))
  return {
    latencies: reactions.map(({ objectId, startedMs }) => startedMs - (sent.get(objectId) ?? Number.NaN)),
    lastCompletedMs: Math.max(...reactions.map(({ completedMs }) => completedMs)),
    count: reactions.length
  }
}

/** From the moment a write is sent to the moment its run is running, at a steady rate. */
const measureSteady = async (bench: AttemptContext, world: World): Promise<void> => {
  const { steadyPerSecond: perSecond, steadySeconds } = bench.size
  const sent = await provoke(bench, world, (act) => atRate(perSecond, perSecond * steadySeconds, act))
  const { latencies } = await startsOf(bench, world, sent)
  const load = `${perSecond} events/s, ${world.label}`
  const beside = { name: "one plain commit", value: bench.floor.commitMs }
  bench.report({ name: "write → running, p50", load, value: quantile(latencies, 0.5), unit: "ms", beside })
  bench.report({ name: "write → running, p99", load, value: quantile(latencies, 0.99), unit: "ms" })
}

/** As many events as sixteen clients can write, and what comes of them until the last is done. */
const measureSaturated = async (bench: AttemptContext, world: World): Promise<void> => {
  const { server, report, size } = bench
  const cpuBefore = await server.cpuMs()
  const start = nowMs()
  const sent = await provoke(bench, world, (act) => withHands(16, { ms: patienceMs, times: size.burst }, act))
  const writtenMs = Math.max(...sent.values()) - start
  const cpu = await server.cpuMs()
  const { count, lastCompletedMs, latencies } = await startsOf(bench, world, sent)
  const load = `${size.burst.toLocaleString("en")} events at once, ${world.label}`
  report({
    name: "reactions completed",
    load,
    value: (count * 1_000) / (lastCompletedMs - start),
    unit: "/s"
  })
  report({ name: "events written meanwhile", load, value: (count * 1_000) / writtenMs, unit: "/s" })
  report({ name: "write → running, p50", load, value: quantile(latencies, 0.5), unit: "ms" })
  report({ name: "write → running, p99", load, value: quantile(latencies, 0.99), unit: "ms" })
  report({
    name: "server's processor time for a reaction",
    load,
    value: (cpu.server - cpuBefore.server) / count,
    unit: "ms"
  })
  report({
    name: "PostgreSQL's processor time for a reaction",
    load,
    value: (cpu.postgres - cpuBefore.postgres) / count,
    unit: "ms"
  })
}

/** Event to running, and reactions per second, with crowds of agents and with a past. */
export const measureReactions = async (bench: AttemptContext): Promise<void> => {
  const works: ReadonlyArray<Work> = ["says one sentence", "calls one tool, then says one sentence"]
  for (const work of works) {
    const world = await newWorld(bench, work, 1, 0)
    // A server's first minute is Bun compiling what it runs; it is not what is compared here.
    await provoke(bench, world, (act) => withHands(4, { ms: patienceMs, times: bench.size.burst }, act))
    await measureSteady(bench, world)
    await measureSaturated(bench, world)
  }
}

export const measureCrowds = async (bench: AttemptContext): Promise<void> => {
  for (const crowd of bench.size.crowds) {
    const world = await newWorld(bench, "says one sentence", crowd, 0)
    await provoke(bench, world, (act) => withHands(4, { ms: patienceMs, times: 20 }, act))
    await measureSteady(bench, world)
    await measureSaturated(bench, world)
  }
}

export const measurePast = async (bench: AttemptContext): Promise<void> => {
  const world = await newWorld(bench, "says one sentence", 1, bench.size.past)
  await provoke(bench, world, (act) => withHands(4, { ms: patienceMs, times: 20 }, act))
  await measureSteady(bench, world)
  await measureSaturated(bench, world)
}

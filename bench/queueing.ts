/**
 * Waiting times of an installation of a given size, simulated: what docs/deployment.md says is what this prints.
 *
 * Events arrive by chance, at a rate that follows the hour and has bursts. Each
 * needs one of the server processes, which have a queue each, and then one of
 * the database's processors, which have one queue. What an event costs is
 * measured (docs/performance.md); locks, disks and the way between machines are
 * not in it, so true times are longer, and a size that queues here is too small.
 */
import { fileURLToPath } from "node:url"
import { readOptions } from "../scripts/program-options.ts"
import { quantile } from "./figures.ts"

/** Numbers between 0 and 1 that follow from a seed. */
export const seeded = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Random = ReturnType<typeof seeded>

const exponential = (random: Random, mean: number): number => -Math.log(1 - random()) * mean

/** Arrivals of a Poisson process whose rate changes, in seconds: those of the highest rate, thinned out. */
export const arrivalsOf = (
  random: Random,
  seconds: number,
  highestRate: number,
  rateAt: (second: number) => number
): ReadonlyArray<number> => {
  const arrivals: Array<number> = []
  for (
    let now = exponential(random, 1 / highestRate);
    now < seconds;
    now += exponential(random, 1 / highestRate)
  )
    if (random() * highestRate < rateAt(now)) arrivals.push(now)
  return arrivals
}

/** When each of the arrivals, which are in order, leaves a station of so many places with one queue. */
export const departuresOf = (
  arrivals: ReadonlyArray<number>,
  places: number,
  serviceOf: (index: number) => number
): ReadonlyArray<number> => {
  // The times at which places become free; the first is the smallest (a heap).
  const free = new Float64Array(places)
  return arrivals.map((arrival, index) => {
    const departure = Math.max(arrival, free[0] ?? 0) + serviceOf(index)
    sink(free, departure)
    return departure
  })
}

const sink = (heap: Float64Array, value: number): void => {
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    const right = left + 1
    let least = left
    if (right < heap.length && (heap[right] ?? 0) < (heap[left] ?? 0)) least = right
    if (least >= heap.length || (heap[least] ?? 0) >= value) break
    heap[at] = heap[least] ?? 0
    at = least
  }
  heap[at] = value
}

/** The mean wait of an M/M/c queue, by Erlang's formula C. */
export const erlangWait = (rate: number, meanService: number, places: number): number => {
  const load = rate * meanService
  let blocked = 1
  for (let place = 1; place <= places; place += 1) blocked = (load * blocked) / (place + load * blocked)
  const waits = blocked / (1 - (load / places) * (1 - blocked))
  return (waits * meanService) / (places - load)
}

/** Processor time in seconds, as docs/performance.md has it. */
export const costs = {
  write: { server: 0.0049, database: 0.0038 },
  reaction: { server: 0.0051, database: 0.0059 }
} as const

export interface Installation {
  /** Of a day. */
  readonly events: number
  /** How many of them wake an agent. */
  readonly reactionShare: number
  /** Server processes; each uses one processor. */
  readonly servers: number
  readonly databaseProcessors: number
}

/** How much of their time the processors work while events come at a rate. */
export const loadOf = ({ databaseProcessors, reactionShare, servers }: Installation, rate: number) => {
  const work = (where: "server" | "database") => costs.write[where] + reactionShare * costs.reaction[where]
  return {
    servers: (rate * work("server")) / servers,
    database: (rate * work("database")) / databaseProcessors
  }
}

export const meanRateOf = ({ events }: Installation): number => events / 86_400

/** The highest hour has three times the mean of the day. */
export const peakOf = (installation: Installation): number => 3 * meanRateOf(installation)

/** Times from the arrival of an event to its end, in ms; bursts are half as much again for 5 s of each minute. */
export const simulate = (
  installation: Installation,
  { burst, rate, seconds, seed }: { rate: number; burst: boolean; seconds: number; seed: number }
): ReadonlyArray<number> => {
  const random = seeded(seed)
  const highest = burst ? 1.5 * rate : rate
  const arrivals = arrivalsOf(random, seconds, highest, (second) =>
    second % 60 >= 30 && second % 60 < 35 ? highest : rate
  )
  const wakes = arrivals.map(() => random() < installation.reactionShare)
  const serviceOf = (where: "server" | "database") => (index: number) =>
    exponential(random, costs.write[where]) +
    (wakes[index] === true ? exponential(random, costs.reaction[where]) : 0)
  const atServers = serviceOf("server")
  const atDatabase = serviceOf("database")
  const queues = Array.from({ length: installation.servers }, (): Array<number> => [])
  for (const index of arrivals.keys()) queues[Math.floor(random() * queues.length)]?.push(index)
  const left = queues.flatMap((queue) => {
    const times = departuresOf(
      queue.map((index) => arrivals[index] ?? 0),
      1,
      (place) => atServers(queue[place] ?? 0)
    )
    return queue.map((index, place) => ({ index, at: times[place] ?? 0 }))
  })
  left.sort((one, other) => one.at - other.at)
  const ends = departuresOf(
    left.map(({ at }) => at),
    installation.databaseProcessors,
    (place) => atDatabase(left[place]?.index ?? 0)
  )
  return left.map(({ index }, place) => ((ends[place] ?? 0) - (arrivals[index] ?? 0)) * 1_000)
}

/** Sizes that the page speaks of: a laptop, a team, and a tenth of 10⁹ events a day, too small and large enough. */
export const sizes: ReadonlyArray<Installation> = [
  { events: 1_000_000, reactionShare: 0.1, servers: 1, databaseProcessors: 1 },
  { events: 10_000_000, reactionShare: 0.1, servers: 3, databaseProcessors: 4 },
  { events: 100_000_000, reactionShare: 0.1, servers: 19, databaseProcessors: 16 },
  { events: 100_000_000, reactionShare: 0.1, servers: 30, databaseProcessors: 24 },
  { events: 100_000_000, reactionShare: 0.1, servers: 36, databaseProcessors: 32 }
]

const percent = (part: number): string => `${Math.round(part * 100)} %`

const timeOf = (ms: number): string => (ms >= 1_000 ? `${(ms / 1_000).toFixed(0)} s` : `${ms.toFixed(0)} ms`)

/** The table of the page, as lines. */
export const table = (seconds = 60): ReadonlyArray<string> => [
  "| events a day | servers | database's processors | at work in the peak hour | peak hour, p50 | p99 | with bursts, p50 | p99 |",
  "| --- | --- | --- | --- | --- | --- | --- | --- |",
  ...sizes.map((size) => {
    const rate = peakOf(size)
    const { database, servers } = loadOf(size, rate)
    const times = [false, true].flatMap((burst) => {
      const taken = simulate(size, { rate, burst, seconds, seed: 1 })
      return [timeOf(quantile(taken, 0.5)), timeOf(quantile(taken, 0.99))]
    })
    return `| ${size.events.toLocaleString("en")} | ${size.servers} | ${size.databaseProcessors} | ${percent(servers)}, ${percent(database)} | ${times.join(" | ")} |`
  })
]

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  readOptions("npm run sizing", {})
  console.log(table().join("\n"))
}

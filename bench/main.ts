/**
 * `npm run bench`: measures a real server through HTTP and prints its figures.
 *
 * Each figure is a line of JSON as soon as it is known (`--json FILE` keeps them)
 * and all are a table at the end. `--only writes,reactions` measures parts,
 * `--small` runs for a few seconds and proves nothing but that the bench works.
 */
import { appendFile } from "node:fs/promises"
import { readKeptFile, readOptions } from "../scripts/program-options.ts"
import { openRows } from "./database.ts"
import { measureContexts } from "./contexts.ts"
import { doorsOf } from "./doors.ts"
import { measureEngine } from "./engine.ts"
import { type Figure, jsonLine, tableOf } from "./figures.ts"
import { measureFloor } from "./floor.ts"
import { measureIdle } from "./idle.ts"
import { measureLimits } from "./limits.ts"
import {
  type AttemptContext,
  measureCrowds,
  measurePast,
  measureReactions,
  measureWrites,
  type Size
} from "./measures.ts"
import { measureOpening } from "./opening.ts"
import { namedIn } from "./parts.ts"
import { startServerProcess } from "./server-process.ts"
import { measureWall } from "./wall.ts"

const parts: Readonly<Record<string, (bench: AttemptContext) => Promise<void>>> = {
  idle: measureIdle,
  writes: measureWrites,
  wall: measureWall,
  reactions: measureReactions,
  crowds: measureCrowds,
  past: measurePast,
  engine: measureEngine,
  contexts: measureContexts,
  openings: measureOpening,
  limits: measureLimits
}

const whole: Size = {
  writesMs: 5_000,
  steadyPerSecond: 100,
  steadySeconds: 10,
  burst: 1_000,
  crowds: [10, 100, 1_000],
  past: 100_000,
  restMs: 2_000,
  idleMs: 20_000,
  steps: 1_000,
  heldRuns: 14,
  queuedRuns: 1_000,
  spokenContexts: 500,
  opened: [100, 1_000, 10_000],
  opens: 9,
  idleContexts: [10_000, 100_000],
  readContexts: 5_000,
  subscribers: 1_000,
  stalled: 50,
  limitRounds: 5,
  limitRequests: 5_000
}
const small: Size = {
  writesMs: 100,
  steadyPerSecond: 10,
  steadySeconds: 1,
  burst: 10,
  crowds: [3],
  past: 50,
  restMs: 0,
  idleMs: 200,
  steps: 40,
  heldRuns: 3,
  queuedRuns: 10,
  spokenContexts: 5,
  opened: [10, 600],
  opens: 2,
  idleContexts: [20],
  readContexts: 10,
  subscribers: 20,
  stalled: 2,
  limitRounds: 1,
  limitRequests: 50
}

const { values } = readOptions(
  `npm run bench -- [--only ${Object.keys(parts).join(",")}] [--small] [--json FILE]`,
  {
    only: { type: "string", default: Object.keys(parts).join(",") },
    small: { type: "boolean", default: false },
    json: { type: "string" }
  }
)
const size = values.small ? small : whole
const wanted = namedIn(parts, values.only)
const kept = values.json === undefined ? undefined : readKeptFile("json", values.json)

const figures: Array<Figure> = []
const lines: Array<string> = []
const report = (figure: Figure): void => {
  figures.push(figure)
  lines.push(jsonLine(figure))
  console.log(jsonLine(figure))
}

const server = await startServerProcess()
const rows = openRows(server.ownerUrl)
try {
  const floor = await measureFloor(server.ownerUrl, size.writesMs, report)
  const bench: AttemptContext = { server, send: doorsOf(server), rows, report, floor, size }
  for (const [, part] of wanted) await part(bench)
} finally {
  await rows.close()
  await server.stop()
}
if (kept !== undefined) await appendFile(kept, lines.map((line) => `${line}\n`).join(""))
console.log(`\n${tableOf(figures)}`)

/**
 * `npm run bench:peers`: Tropism and its peers in turns on one PostgreSQL, each figure beside its bound.
 *
 * Every round of every subject is told as it comes; figures and bounds are lines
 * of JSON (`--json FILE` keeps them) and two tables at the end. `--only steps,loops`
 * compares parts, `--rounds N` says how often, `--small` runs for seconds and
 * proves nothing but that it works. It exits with 0 whether the bounds hold or not:
 * a machine that others use decides no build.
 */
import { appendFile } from "node:fs/promises"
import { loadavg } from "node:os"
import { readKeptFile, readNumber, readOptions } from "../../scripts/program-options.ts"
import { openRows } from "../database.ts"
import { doorsOf } from "../doors.ts"
import { namedIn } from "../parts.ts"
import { startServerProcess } from "../server-process.ts"
import {
  judge,
  type Outcome,
  outcomesOf,
  type Prepared,
  takeTurns,
  type Units,
  type Verdict
} from "./comparison.ts"
import { crowdUnits, prepareCrowds } from "./crowds.ts"
import { durableRunUnits, prepareDurableRuns } from "./durable-runs.ts"
import { installPeers } from "./install.ts"
import { keptStepUnits, prepareKeptSteps } from "./kept-steps.ts"
import { loopUnits, prepareLoops } from "./loops.ts"
import { prepareReactions, reactionUnits } from "./reactions.ts"
import { openingUnits, prepareOpenings } from "./openings.ts"
import { openStage, type Scale, type Stage } from "./stage.ts"
import { prepareStarts, startUnits } from "./starts.ts"
import { prepareTurns, turnUnits } from "./turns.ts"
import { outcomeLine, outcomeTable, verdictLine, verdictTable } from "./tables.ts"

const comparisons: Readonly<
  Record<string, { readonly units: Units; readonly prepare: (stage: Stage) => Promise<Prepared> }>
> = {
  steps: { units: keptStepUnits, prepare: prepareKeptSteps },
  loops: { units: loopUnits, prepare: prepareLoops },
  runs: { units: durableRunUnits, prepare: prepareDurableRuns },
  reactions: { units: reactionUnits, prepare: prepareReactions },
  turns: { units: turnUnits, prepare: prepareTurns },
  openings: { units: openingUnits, prepare: prepareOpenings },
  crowds: { units: crowdUnits, prepare: prepareCrowds },
  starts: { units: startUnits, prepare: prepareStarts }
}

const whole: Scale = {
  steps: 50,
  manySteps: 200,
  times: 3,
  runs: 200,
  perSecond: 100,
  steadyEvents: 500,
  narrow: 1_000,
  wide: 100,
  backlog: 5_000,
  fewTurns: 10,
  manyTurns: 1_000,
  measuredTurns: 5,
  openedEvents: 10_000,
  opens: 5,
  objects: 100_000,
  restMs: 2_000,
  idleMs: 10_000,
  crowd: 10_000,
  shortQueue: 10_000,
  longQueue: 100_000,
  worksMs: 4_000
}
const small: Scale = {
  steps: 5,
  manySteps: 20,
  times: 1,
  runs: 4,
  perSecond: 20,
  steadyEvents: 10,
  narrow: 20,
  wide: 3,
  backlog: 50,
  fewTurns: 2,
  manyTurns: 20,
  measuredTurns: 2,
  openedEvents: 100,
  opens: 1,
  objects: 100,
  restMs: 0,
  idleMs: 200,
  crowd: 5,
  shortQueue: 20,
  longQueue: 100,
  worksMs: 300
}

const { values } = readOptions(
  `npm run bench:peers -- [--only ${Object.keys(comparisons).join(",")}] [--rounds N] [--small] [--json FILE]`,
  {
    only: { type: "string", default: Object.keys(comparisons).join(",") },
    rounds: { type: "string" },
    small: { type: "boolean", default: false },
    json: { type: "string" }
  }
)
const wanted = namedIn(comparisons, values.only)
const rounds = readNumber("rounds", values.rounds ?? (values.small ? "1" : "5"), 1)
const kept = values.json === undefined ? undefined : readKeptFile("json", values.json)

const outcomes: Array<Outcome> = []
const verdicts: Array<Verdict> = []
const lines: Array<string> = []
const say = (line: string): void => {
  lines.push(line)
  console.log(line)
}

await installPeers((line) => console.log(line))
const server = await startServerProcess()
const rows = openRows(server.ownerUrl)
const stage = openStage(server, doorsOf(server), rows, values.small ? small : whole)
try {
  for (const [, { prepare, units }] of wanted) {
    const { bounds, close, subjects } = await prepare(stage)
    const taken = await takeTurns(subjects, rounds, (line) => console.log(line))
    await close()
    for (const outcome of outcomesOf(taken, subjects, units)) {
      outcomes.push(outcome)
      say(outcomeLine(outcome))
    }
    for (const bound of bounds) {
      const verdict = judge(taken, bound)
      verdicts.push(verdict)
      say(verdictLine(verdict))
    }
  }
} finally {
  await stage.close()
  await rows.close()
  await server.stop()
}
if (kept !== undefined) await appendFile(kept, lines.map((line) => `${line}\n`).join(""))
const load = loadavg().map((average) => average.toFixed(1))
console.log(`\n${outcomeTable(outcomes)}\n\n${verdictTable(verdicts)}`)
console.log(`\n${rounds} rounds; load average at the end ${load.join(", ")}`)

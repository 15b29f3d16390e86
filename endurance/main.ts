/**
 * `npm run endurance`: loads a real server for most of an hour, and says whether it holds and stays flat.
 *
 * Each trial has a server of its own, in a process of its own, with the
 * PostgreSQL that it brings. `--only events,subscribers,writes` runs some,
 * `--small` takes seconds and shows only that they work, `--record` writes what
 * was seen into docs/testing.md. It ends with 1 when something does not hold.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"
import { join } from "node:path"
import { readOptions, refuse } from "../scripts/program-options.ts"
import { openRows } from "../bench/database.ts"
import { doorsOf, nowMs } from "../bench/doors.ts"
import { namedIn } from "../bench/parts.ts"
import { startServerProcess } from "../bench/server-process.ts"
import { passEvents } from "./events.ts"
import { type Outcome, recordedIn, sectionOf } from "./record.ts"
import { tellSubscribers } from "./subscribers.ts"
import type { Finding, Size, Trial } from "./trial.ts"
import { keepWriting } from "./writes.ts"

const trials: Readonly<Record<string, (trial: Trial) => Promise<ReadonlyArray<Finding>>>> = {
  events: passEvents,
  subscribers: tellSubscribers,
  writes: keepWriting
}

const whole: Size = {
  lookEveryMs: 5_000,
  events: 100_000,
  ahead: 1_000,
  subscribers: 1_000,
  subscribedMs: 600_000,
  toldPerSecond: 10,
  writtenMs: 1_800_000,
  writtenPerSecond: 300
}
const small: Size = {
  lookEveryMs: 50,
  events: 100,
  ahead: 30,
  subscribers: 10,
  subscribedMs: 2_000,
  toldPerSecond: 20,
  writtenMs: 2_000,
  writtenPerSecond: 50
}

const { values } = readOptions(
  `npm run endurance -- [--only ${Object.keys(trials).join(",")}] [--small] [--record]`,
  {
    only: { type: "string", default: Object.keys(trials).join(",") },
    small: { type: "boolean", default: false },
    record: { type: "boolean", default: false }
  }
)
if (values.small && values.record) refuse("--record keeps whole trials only: leave --small out")
const size = values.small ? small : whole
const wanted = namedIn(trials, values.only)

const page = join(import.meta.dirname, "../docs/testing.md")
const record = (outcome: Outcome): void => {
  const load = `load average of the last minutes ${(loadavg()[1] ?? 0).toFixed(1)}`
  const when = `${new Date().toISOString().slice(0, 10)}, on ${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), ${load}.`
  const result = `${sectionOf(outcome, size)}\n\n${when}`
  writeFileSync(page, recordedIn(readFileSync(page, "utf8"), outcome.name, result))
}

const outcomes: Array<Outcome> = []
for (const [name, trial] of wanted) {
  const begun = nowMs()
  const server = await startServerProcess()
  const rows = openRows(server.ownerUrl)
  try {
    const findings = await trial({ server, rows, send: doorsOf(server), size })
    const outcome = { name, minutes: (nowMs() - begun) / 60_000, findings }
    outcomes.push(outcome)
    console.log(`${sectionOf(outcome, size)}\n`)
    if (values.record) record(outcome)
  } finally {
    await rows.close()
    await server.stop()
  }
}

// Some seconds say nothing about time and growth.
const broken = outcomes.flatMap(({ findings }) =>
  findings.filter(({ bound }) => bound?.holds === false && !(values.small && bound.isOfTime))
)
console.log(
  broken.length > 0
    ? `${broken.length} bounds do not hold.`
    : values.small
      ? "Nothing is missing and nothing is there twice; times and growth were not judged."
      : "Everything holds."
)
process.exitCode = broken.length === 0 ? 0 : 1

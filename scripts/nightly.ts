/**
 * `npm run nightly`: what takes too long for each change, one part after another, with seeds of its own each day.
 *
 * `--seed S` repeats a night, `--seeds N` says how many are simulated. A part that
 * fails keeps none behind it from running; it ends with 1 where one did. What the
 * endurance saw is written into docs/testing.md. It takes some four hours with
 * 2,000 seeds; the times that are measured want a machine with nothing else to do.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { readNumber, readOptions } from "./program-options.ts"

/** Seeds of two days have this distance. */
const seedsPerDay = 10_000
const today = Math.floor(Date.now() / 86_400_000)

const { values } = readOptions("npm run nightly -- [--seed S] [--seeds N]", {
  seed: { type: "string", default: String(today * seedsPerDay) },
  seeds: { type: "string", default: "2000" }
})
const seed = readNumber("seed", values.seed, 0)
const seeds = readNumber("seeds", values.seeds, 1)

const chaos =
  "--cluster --kills 50 --freezes 50 --freeze-seconds 90 --database-stops 20 --cuts 20 --terminations 10 --silences 0 --restarts 20"

const parts: ReadonlyArray<readonly [name: string, options: string]> = [
  ["soak", ""],
  ["endurance", "--record"],
  ["chaos", `${chaos} --seed ${seed}`],
  ["simulate", `--lanes 5 --seed ${seed} --seeds ${seeds}`]
]

const outcomes = parts.map(([name, options]) => {
  const call = `npm run ${name} -- ${options}`.replace(/ -- $/, "")
  console.log(`\n── ${call}`)
  const fromMs = performance.now()
  const { status } = spawnSync(call, { cwd: join(import.meta.dirname, ".."), shell: true, stdio: "inherit" })
  return { name, passed: status === 0, minutes: (performance.now() - fromMs) / 60_000 }
})

console.log("")
for (const { minutes, name, passed } of outcomes)
  console.log(`${passed ? "passed" : "FAILED"}  ${name.padEnd(10)}${minutes.toFixed(0).padStart(4)} min`)
process.exit(outcomes.every(({ passed }) => passed) ? 0 : 1)

/**
 * Reports how long each test file took: the slowest, those of the first tier that are too slow, and the whole in one last line.
 *
 * With `TROPISM_RECORD_TIMES=yes` a whole run writes the times of its tier's files to `test-times.json`, by which the next run
 * starts the longest first and `tiers.test.ts` finds a file that belongs to another tier.
 */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Reporter, SerializedError, TestModule, TestRunEndReason, Vitest } from "vitest/node"
import { slowestFileSeconds, testTimes, tierOf } from "./tiers.ts"

const root = join(import.meta.dirname, "..")
const table = join(import.meta.dirname, "test-times.json")

export default class TestTimes implements Reporter {
  private begun = performance.now()
  private vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.vitest = vitest
    this.begun = performance.now()
  }

  onTestRunEnd(
    modules: ReadonlyArray<TestModule>,
    errors: ReadonlyArray<SerializedError>,
    reason: TestRunEndReason
  ): void {
    const times = modules
      .map((module): readonly [string, number] => [module.relativeModuleId, secondsOf(module)])
      .toSorted(([, one], [, other]) => other - one)
    if (times.length > 10) {
      console.log("The slowest files, in seconds:")
      for (const [path, seconds] of times.slice(0, 10))
        console.log(`${seconds.toFixed(1).padStart(7)}  ${path}`)
    }
    const own = times.filter(([path]) => tierOf(path) === this.tier())
    if (process.env["TROPISM_RECORD_TIMES"] === "yes") record(own)
    for (const [path, seconds] of own)
      if (tierOf(path) === "first" && seconds > slowestFileSeconds)
        console.warn(
          `${path} took ${seconds.toFixed(1)} s. A file over ${slowestFileSeconds} s belongs to the deep tier: rename it to NAME.deep.test.ts, or make it faster.`
        )
    const tests = modules.reduce((sum, module) => sum + [...module.children.allTests()].length, 0)
    const seconds = ((performance.now() - this.begun) / 1_000).toFixed(0)
    const outcome = reason === "passed" && errors.length === 0 ? "passed" : "FAILED"
    console.log(`${outcome}: ${tests} tests in ${modules.length} files, ${seconds} s`)
  }

  private tier(): unknown {
    return this.vitest?.config.env["TROPISM_TEST_TIER"]
  }
}

const secondsOf = (module: TestModule): number => {
  const { collectDuration, duration } = module.diagnostic()
  return (collectDuration + duration) / 1_000
}

/** Writes the times of these files into the table, in place of what it has of them. */
const record = (times: ReadonlyArray<readonly [string, number]>): void => {
  const all = { ...testTimes, ...Object.fromEntries(times) }
  const rows = Object.entries(all)
    .filter(([path, seconds]) => seconds >= 1 && existsSync(join(root, path)))
    .map(([path, seconds]): [string, number] => [path, Math.round(seconds * 10) / 10])
    .toSorted(([, one], [, other]) => other - one)
  writeFileSync(table, `${JSON.stringify(Object.fromEntries(rows), undefined, 2)}\n`)
}

/**
 * How every test of the workspace runs: under Bun, in threads, against one real PostgreSQL.
 *
 * `bun --bun vitest run`. Bun cannot run vitest's default pool of forks; files
 * in one thread share their modules, which makes a run three times as fast, so
 * no test may leave anything behind in a module. Bun loads the files itself:
 * what vite makes of them takes longer to load, and each use of an import, too.
 * `npm test` lets Bun keep the memory that it has, and leave out its last
 * compiler, which takes longer than a story runs: that saves a quarter of all
 * processor time where a page fault is dear.
 */
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** The tests' PostgreSQL has connections for so many files at once (`global-setup.ts`). */
const mostWorkers = 8

/** Files that take longest begin first, so that none of them is left at the end to work alone. */
const longest = [
  "simulation/simulation.test.ts",
  "stories/killed-anywhere.test.ts",
  "stories/cancel-races.test.ts",
  "bench/bench.test.ts"
]

class LongestFirst extends BaseSequencer {
  override sort(files: Array<TestSpecification>) {
    const rank = ({ moduleId }: TestSpecification) =>
      longest.findIndex((name) => moduleId.endsWith(`/${name}`)) >>> 0
    return super.sort(files).then((sorted) => sorted.toSorted((one, other) => rank(one) - rank(other)))
  }
}

export default defineConfig({
  test: {
    include: [
      "packages/**/*.test.{ts,tsx}",
      "scripts/**/*.test.ts",
      "bench/**/*.test.ts",
      "endurance/**/*.test.ts",
      "hostile/**/*.test.ts",
      "mutants/**/*.test.ts"
    ],
    exclude: ["**/node_modules/**", "**/dist/**"],
    pool: "threads",
    // A story asks as often as it can; those of rate limits say how often one may.
    env: { TROPISM_RATE_LIMIT: "off" },
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // A story waits for PostgreSQL, for programs and for time about half as long as it works, so one
    // worker more than there are cores keeps them all at work; vitest itself would take one less.
    maxWorkers: Math.min(availableParallelism() + 1, mostWorkers),
    sequence: { sequencer: LongestFirst },
    globalSetup: ["packages/server/testing/global-setup.ts"],
    // For a hang alone: a story on a machine that does five other things takes a minute, and what it waits
    // for has a bound of its own (`eventually`).
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000
  }
})

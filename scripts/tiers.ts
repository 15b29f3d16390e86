/**
 * The tiers of tests: which files each one runs, by their names, and how.
 *
 * `NAME.test.ts` belongs to `npm test`, and so does `NAME.smoke.test.ts`, the one story of a kind of fault.
 * `NAME.deep.test.ts` and `NAME.browser.test.ts` belong to `npm run test:deep`: they start processes or several servers,
 * break them, race, count cost, or take long. `NAME.matrix.test.ts` belongs to both, its diagonal or a sample to the first.
 * `NAME.soak.ts` belongs to `npm run nightly`, with every file that shows more of itself there (`testing/tier.ts`).
 *
 * All run under Bun, in threads, against one real PostgreSQL. Bun cannot run vitest's default pool of forks. Files of one
 * thread share their modules, and the servers that stories share, so no test may leave anything behind in a module. Bun
 * loads the files itself: what vite makes of them takes longer to load, and each use of an import, too.
 */
import { readdirSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import type { ViteUserConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

export type Tier = "first" | "deep" | "nightly"

const root = join(import.meta.dirname, "..")

/** How long each file took when the table was last written, in seconds; files under a second are left out. */
export const testTimes: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(import.meta.dirname, "test-times.json"), "utf8")
)

/** A file of the first tier that takes longer than this belongs to another one. */
export const slowestFileSeconds = 20

/** The tier in whose name a file runs; a matrix counts as one of the first. */
export const tierOf = (path: string): Tier =>
  /\.(?:deep|browser)\.test\.tsx?$/.test(path) ? "deep" : path.endsWith(".soak.ts") ? "nightly" : "first"

const folders = ["packages", "scripts", "bench", "endurance", "hostile", "mutants"]
const inFolders = (name: string) => folders.map((folder) => `${folder}/**/${name}`)

/** The files that ask `testing/tier.ts` how much of themselves to show. */
const graded = (): ReadonlyArray<string> =>
  readdirSync(join(root, "packages"), { recursive: true, encoding: "utf8" })
    .map((path) => `packages/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".test.ts") && !path.includes("/node_modules/"))
    .filter((path) =>
      /\/testing\/tier\.ts"|simulated-for-tests\.ts"/.test(readFileSync(join(root, path), "utf8"))
    )

const included: Readonly<Record<Tier, () => Array<string>>> = {
  first: () => inFolders("*.test.{ts,tsx}"),
  deep: () => inFolders("*.{deep,browser,matrix}.test.{ts,tsx}"),
  nightly: () => [...inFolders("*.soak.ts"), ...graded()]
}

/** Files that take longest begin first, so that none of them is left at the end to work alone. */
class LongestFirst extends BaseSequencer {
  override sort(files: Array<TestSpecification>) {
    const seconds = ({ moduleId }: TestSpecification) => testTimes[moduleId.slice(root.length + 1)] ?? 0
    return Promise.resolve(files.toSorted((one, other) => seconds(other) - seconds(one)))
  }
}

/** The tests' PostgreSQL has connections for so many files at once (`global-setup.ts`). */
const mostWorkers = 8

/**
 * How a tier runs. Stories of the first tier wait for PostgreSQL and time: two workers a core keep every core at work.
 * Those of the others start browsers and processes, and get one worker more than there are cores.
 */
export const tierConfig = (tier: Tier): ViteUserConfig => ({
  root,
  test: {
    include: included[tier](),
    exclude: [
      "**/node_modules/**",
      "**/dist/**",
      ...(tier === "first" ? ["**/*.{deep,browser}.test.{ts,tsx}"] : [])
    ],
    pool: "threads",
    // A story asks as often as it can; those of rate limits say how often one may.
    env: { TROPISM_RATE_LIMIT: "off", TROPISM_TEST_TIER: tier },
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    maxWorkers: Math.min(
      tier === "first" ? 2 * availableParallelism() : availableParallelism() + 1,
      mostWorkers
    ),
    sequence: { sequencer: LongestFirst },
    reporters: ["default", join(import.meta.dirname, "test-times.ts")],
    globalSetup: ["packages/server/testing/global-setup.ts"],
    // Only for a test that hangs: what a story waits for has a bound of its own (`eventually`).
    testTimeout: 180_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000
  }
})

/**
 * Runs what takes minutes, for `npm run soak`: stories that `npm test` leaves out by their name, and all of what it shows a part of.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitest/config"

const stories = join(import.meta.dirname, "../stories")

/** The stories of which `npm test` shows a part: they ask `soak.ts` how much that is. */
const partial = readdirSync(stories).filter(
  (name) => name.endsWith(".test.ts") && readFileSync(join(stories, name), "utf8").includes("testing/soak.ts")
)

export default defineConfig({
  root: new URL("../../..", import.meta.url).pathname,
  test: {
    include: [
      "packages/server/stories/**/*.soak.ts",
      ...partial.map((name) => `packages/server/stories/${name}`),
      "packages/server/simulation/simulation.test.ts"
    ],
    // Read by `soak.ts`.
    env: { TROPISM_SOAK: "yes", TROPISM_RATE_LIMIT: "off" },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "threads",
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    globalSetup: ["packages/server/testing/global-setup.ts"],
    teardownTimeout: 60_000
  }
})

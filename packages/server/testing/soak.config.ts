/**
 * Runs what takes minutes, for `npm run soak`: stories that `npm test` leaves out by their name, and all of what it shows a part of.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: new URL("../../..", import.meta.url).pathname,
  test: {
    include: [
      "packages/server/stories/**/*.soak.ts",
      ...["approval-races", "cancel-races", "concurrent-writers", "gate-matrix", "windows"].map(
        (name) => `packages/server/stories/${name}.test.ts`
      ),
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

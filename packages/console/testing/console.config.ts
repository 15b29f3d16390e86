/**
 * Runs every browser test for `npm run test:console`, also those that take a minute and that `npm test` leaves out by their name.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: new URL("../../..", import.meta.url).pathname,
  test: {
    include: ["packages/console/testing/**/*.{browser.test,long}.ts"],
    env: { TROPISM_RATE_LIMIT: "off" },
    testTimeout: 180_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    pool: "threads",
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    globalSetup: ["packages/server/testing/global-setup.ts"]
  }
})

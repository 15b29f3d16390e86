/**
 * Runs the tests that look after the code itself, without a database, for `npm run check`.
 *
 * `npm test` runs them too, together with all others, by the configuration in the root.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    include: ["scripts/**/*.test.ts"],
    pool: "threads",
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    testTimeout: 30_000
  }
})

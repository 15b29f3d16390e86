/**
 * How every test of the workspace runs: under Bun, in threads, against one real PostgreSQL.
 *
 * `bun --bun vitest run`. Bun cannot run vitest's default pool of forks; files
 * in one thread share their modules, which makes a run three times as fast, so
 * no test may leave anything behind in a module.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/**/*.test.{ts,tsx}", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    pool: "threads",
    isolate: false,
    globalSetup: ["packages/server/testing/global-setup.ts"],
    // Starting a server or a browser on a busy machine takes its time; a hang is still found.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000
  }
})

/**
 * Runs the stories that take minutes, for `npm run soak`; `npm test` leaves them out by their name.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: new URL("../../..", import.meta.url).pathname,
  test: {
    include: ["packages/server/stories/**/*.soak.ts"],
    pool: "threads",
    isolate: false,
    globalSetup: ["packages/server/testing/global-setup.ts"],
    teardownTimeout: 60_000
  }
})

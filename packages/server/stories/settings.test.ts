/** A setting that cannot be used keeps the server from starting, with a sentence that says what to set. */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startServer } from "../testing/platform.ts"

describe("A setting that cannot be used", () => {
  it.live("keeps the server from starting, and its value is not told", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      for (const [name, value] of [
        ["TROPISM_OPENAI_API", "xyzzy"],
        ["OPENAI_COMPATIBLE_BASE_URL", "xyzzy"],
        ["OPENAI_BASE_URL", "file:///xyzzy"],
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "xyzzy"]
      ] as const) {
        const environment = ConfigProvider.layer(ConfigProvider.fromEnv({ env: { [name]: value } }))
        const exit = yield* Effect.exit(Effect.provide(startServer(access), environment))
        const told = Exit.isFailure(exit) ? String(exit.cause) : "started"
        expect(told).toContain(`${name} must be `)
        expect(told).not.toContain("xyzzy")
        expect(told).not.toContain("SchemaError")
      }
    }).pipe(Effect.scoped)
  )
})

/**
 * The server's log: one line says what happened and why.
 */
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"
import { SqlError } from "effect/sql"
import { lineLogger } from "./server-log.ts"

it.effect("says what the database said, and not only that a query failed", () =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.map(lineLogger, (line) => void lines.push(line))
    const error = new SqlError.SqlError({
      reason: new SqlError.UnknownError({
        message: "PgConnection: Query failed",
        cause: new Error("unsupported Unicode escape sequence")
      })
    })
    yield* Effect.logError("An import failed", Cause.die(error)).pipe(
      Effect.andThen(Effect.logError("The relay failed and will try again", error)),
      Effect.provide(Logger.layer([logger]))
    )
    const why = "PgConnection: Query failed: unsupported Unicode escape sequence"
    expect(lines.map((line) => line.replace(/^\S+ +/, ""))).toEqual([
      `error  An import failed: ${why}`,
      `error  The relay failed and will try again ${why}`
    ])
  })
)

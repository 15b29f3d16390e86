/**
 * The server's log: one line says what happened and why.
 */
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"
import { SqlError } from "effect/sql"
import { jsonLogger, lineLogger } from "./server-log.ts"

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
      Effect.andThen(Effect.logError("The relay stopped and starts over", error)),
      Effect.provide(Logger.layer([logger]))
    )
    const why = "PgConnection: Query failed: unsupported Unicode escape sequence"
    expect(lines.map((line) => line.replace(/^\S+ +/, ""))).toEqual([
      `error  An import failed: ${why}`,
      `error  The relay stopped and starts over: ${why}`
    ])
  })
)

it.effect("as text a line is one line, and says nothing to the terminal, whoever's words it tells", () =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.map(lineLogger, (line) => void lines.push(line))
    yield* Effect.logWarning("A switch was turned on", {
      reason: "Enough\n09:00:00  error  \u001b[31mForged"
    }).pipe(
      Effect.andThen(Effect.logError("It failed", Cause.die(new Error("\u001b[2Jgone")))),
      Effect.provide(Logger.layer([logger]))
    )
    expect(lines.map((line) => line.replace(/^\S+ +/, ""))).toEqual([
      "warn  A switch was turned on reason=Enough 09:00:00 error \uFFFD[31mForged",
      "error  It failed: \uFFFD[2Jgone"
    ])
  })
)

it.effect(
  "as JSON an event is one line, whatever it says, with the request or the run that it is about",
  () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.map(jsonLogger, (line) => void lines.push(line))
      yield* Effect.logError("It\nfailed", Cause.die(new Error("no\nroom"))).pipe(
        Effect.annotateLogs({ requestId: "r-1", projectId: "p-1" }),
        Effect.andThen(
          Effect.logWarning("Later", { agentId: "a-1", time: "forged" }).pipe(
            Effect.annotateLogs("level", "forged")
          )
        ),
        Effect.provide(Logger.layer([logger]))
      )
      expect(lines.filter((line) => line.includes("\n"))).toEqual([])
      expect(lines.map((line) => JSON.parse(line))).toEqual([
        {
          requestId: "r-1",
          projectId: "p-1",
          time: "1970-01-01T00:00:00.000Z",
          level: "error",
          message: "It\nfailed",
          cause: "no"
        },
        { agentId: "a-1", time: "1970-01-01T00:00:00.000Z", level: "warn", message: "Later" }
      ])
    })
)

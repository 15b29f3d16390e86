/**
 * `tropism migrate`: the database brought to the schema of this program, without starting the server.
 */
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { failure } from "../failure.ts"
import { showStatus } from "../notice.ts"
import { printOr } from "../print-records.ts"
import { readEnvironment } from "../settings.ts"
import { Screen } from "../terminal/screen.ts"

export const migrateCommand = Command.make("migrate", {}, () =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const { databaseUrl, dataFolder } = yield* readEnvironment
    yield* showStatus("Bringing the database up to date …")
    const { bringUpToDate } = yield* Effect.promise(() => import("@tropism/server/main"))
    const schema = yield* bringUpToDate({
      dataFolder,
      ...(Option.isSome(databaseUrl) ? { databaseUrl: databaseUrl.value } : {})
    }).pipe(
      Effect.mapError(({ message }) => failure(message)),
      Effect.ensuring(screen.redraw(undefined))
    )
    yield* printOr(
      schema,
      screen.print(
        schema.before === schema.now
          ? `The database has the schema of this program already: ${schema.now}.`
          : `The database has the schema ${schema.now} now; it had ${schema.before ?? "none"}.`
      )
    )
  })
).pipe(
  Command.withShortDescription("Bring the database up to date, without the server"),
  Command.withDescription("Bring the database to this program's schema without starting the server"),
  Command.withExamples([
    { command: "tropism migrate", description: "The database of the data folder, while no server has it" },
    { command: "DATABASE_URL=postgres://… tropism migrate", description: "A PostgreSQL that others run" }
  ])
)

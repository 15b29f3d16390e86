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
    yield* showStatus("Migrating the database …")
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
          ? `The database schema is already up to date: ${schema.now}.`
          : `The database was migrated to schema ${schema.now} from ${schema.before ?? "none"}.`
      )
    )
  })
).pipe(
  Command.withShortDescription("Migrate the database without starting the server"),
  Command.withDescription("Migrate the database to this version's schema without starting the server"),
  Command.withExamples([
    { command: "tropism migrate", description: "The embedded database, while the server is stopped" },
    { command: "DATABASE_URL=postgres://… tropism migrate", description: "An external PostgreSQL" }
  ])
)

/**
 * The database, whoever runs it: reachable, new enough, writable, with its role, its schema and its clock.
 */
import { examineDatabase, findOwnDatabase } from "@tropism/server/database/schema"
import { Effect, Option, Redacted } from "effect"
import { limits } from "../limits.ts"
import type { Environment } from "../settings.ts"
import { formatDuration } from "../terminal/time.ts"
import { fault, type Finding, ok, warn } from "@tropism/domain/finding"

const oldestPostgres = 15

type Facts = Effect.Success<ReturnType<typeof examineDatabase>>

/** Says of a database what was found in it. */
export const databaseFindings = (facts: Facts): ReadonlyArray<Finding> => [
  facts.version < oldestPostgres
    ? fault(
        "database",
        `PostgreSQL ${facts.version} is too old; ${oldestPostgres} is the minimum.`,
        "unset DATABASE_URL"
      )
    : facts.isWritable
      ? ok("database", `PostgreSQL ${facts.version} is reachable.`)
      : fault(
          "database",
          "The database is read-only: it is a replica, or default_transaction_read_only is set.",
          "psql \"$DATABASE_URL\" -c 'show default_transaction_read_only'"
        ),
  facts.roleFault === null
    ? ok("database role", "The server's role owns nothing and cannot bypass row-level security.")
    : fault(
        "database role",
        `The role tropism_server ${facts.roleFault}.`,
        facts.roleFault.startsWith("passes")
          ? `psql "$DATABASE_URL" -c 'alter role tropism_server nosuperuser nobypassrls'`
          : facts.roleFault.startsWith("is not")
            ? `psql "$DATABASE_URL" -c 'grant tropism_server to current_user'`
            : 'let an administrator of that PostgreSQL run: create role tropism_server nologin; grant tropism_server to "the login of DATABASE_URL"'
      ),
  schemaFinding(facts),
  Math.abs(facts.aheadMs) < limits.clockSkewMs
    ? ok("clock", "The clocks of the database and this machine agree.")
    : warn(
        "clock",
        `The database's clock is ${formatDuration(Math.abs(facts.aheadMs))} ${facts.aheadMs > 0 ? "ahead" : "behind"}.`,
        "timedatectl set-ntp true"
      )
]

const schemaFinding = ({ knownSchema, schema }: Facts): Finding => {
  if (schema === null) return ok("schema", "The database is empty; the first start migrates it.")
  if (schema > knownSchema)
    return fault(
      "schema",
      `The schema is ${schema} and this program has ${knownSchema}: the program is older than the database.`,
      "install the newer version: in a checkout git pull && npm ci, else npm install -g ./tropism-VERSION.tgz"
    )
  return schema < knownSchema
    ? warn(
        "schema",
        `The schema is ${schema} and this program's is ${knownSchema}; the next start migrates it.`,
        "tropism migrate"
      )
    : ok("schema", `${schema}, as this program has it`)
}

/** Looks at the database that a start would use. */
export const examineStore = (environment: Environment) =>
  Effect.gen(function* () {
    if (Option.isSome(environment.databaseUrl)) {
      const url = environment.databaseUrl.value
      if (!/^postgres(ql)?:$/.test(URL.parse(Redacted.value(url))?.protocol ?? ""))
        return [
          fault(
            "database",
            "DATABASE_URL is not a PostgreSQL URL.",
            "export DATABASE_URL=postgres://user:password@host:5432/database"
          )
        ]
      return databaseFindings(yield* examineDatabase(url, "another"))
    }
    const own = yield* findOwnDatabase(environment.dataFolder)
    if (Option.isNone(own)) return [ok("database", "The first start creates one in the data folder.")]
    return yield* Effect.map(examineDatabase(own.value, "own"), databaseFindings).pipe(
      Effect.catch(() => Effect.succeed([ok("database", "Not running; it starts with the server.")]))
    )
  }).pipe(
    Effect.timeoutOrElse({
      duration: limits.doctorAnswerMs,
      orElse: () =>
        Effect.succeed([fault("database", "It does not respond.", 'psql "$DATABASE_URL" -c "select 1"')])
    }),
    Effect.catch(({ message }) =>
      Effect.succeed([
        fault(
          "database",
          message,
          Option.isSome(environment.databaseUrl)
            ? 'psql "$DATABASE_URL" -c "select 1"'
            : `ls -la ${environment.dataFolder}`
        )
      ])
    )
  )

/**
 * Reaches a PostgreSQL that others run, by the address in `DATABASE_URL`.
 *
 * Nothing is started or ended here, and a server that cannot be reached is
 * told at once instead of waited for: only one that says it is starting is.
 */
import { Effect, Redacted } from "effect"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"
import { connect, connectionProblem, place, type PostgresAccess, serverRole } from "./postgres-access.ts"
import { provisionExternal } from "./provision.ts"

const oldestVersion = 15

/** Answers the ways in, after making sure of the version and of the server's role. */
export const external = Effect.fn("external")(function* (
  url: Redacted.Redacted<string>
): Effect.fn.Return<PostgresAccess, DatabaseUnavailable> {
  if (!/^postgres(ql)?:$/.test(URL.parse(Redacted.value(url))?.protocol ?? ""))
    return yield* unavailable(
      "unreachable",
      "DATABASE_URL is no address of a PostgreSQL: write postgres://user:password@host:5432/database, or start without it to use the PostgreSQL that the program brings."
    )
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* connect(url).pipe(Effect.mapError(connectionProblem(url)))
      const rows = yield* connection
        .queryValues("select current_setting('server_version_num')::int / 10000")
        .pipe(Effect.mapError(connectionProblem(url)))
      const version = Number(rows[0]?.[0])
      if (version < oldestVersion) {
        return yield* unavailable(
          "versionTooOld",
          `PostgreSQL at ${place(url)} is version ${version} and ${oldestVersion} is the oldest that works: upgrade it, or start without DATABASE_URL to use the one that the program brings.`
        )
      }
      yield* provisionExternal(connection, version)
      const access: PostgresAccess = {
        ownerUrl: url,
        serverUrl: url,
        serverStartupParameters: { role: serverRole },
        embedded: false,
        version
      }
      return access
    })
  )
})

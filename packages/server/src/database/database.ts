/**
 * The door to PostgreSQL: a transaction that sees one project's rows.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Whatever reads or writes a project's rows requires a `ProjectTransaction`, so
 * forgetting the project does not compile, and the database refuses it besides:
 * with no project set, row-level security shows nothing. A broken database is a
 * defect here and not an error that each caller handles; the loops that must
 * outlive it and the HTTP edge catch it there.
 */
import { PgClient } from "@effect/sql-pg"
import type { ProjectId } from "@tropism/domain/ids"
import { type Cause, Context, Effect, Layer, type Redacted, String as Text } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { poolLimits } from "../limits.ts"

/** The proof that a transaction is open and which project it sees. */
export class ProjectTransaction extends Context.Service<
  ProjectTransaction,
  { readonly projectId: ProjectId }
>()("@tropism/server/database/ProjectTransaction") {}

export class Database extends Context.Service<
  Database,
  {
    /** Runs an effect in one transaction that sees one project's rows. A failure rolls back. */
    readonly inProject: <A, E, R>(
      projectId: ProjectId,
      effect: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, Exclude<R, ProjectTransaction>>

    /** Runs reads in one transaction of a project that all see one moment, however long it takes. Nothing can be written. */
    readonly inSnapshot: <A, E, R>(
      projectId: ProjectId,
      effect: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, Exclude<R, ProjectTransaction>>

    /** Runs an effect so that its writes can be undone alone, when it fails, inside an open transaction. */
    readonly attempt: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | ProjectTransaction>

    /** Whether the database answers. */
    readonly ping: Effect.Effect<boolean>
  }
>()("@tropism/server/database/Database") {
  static readonly layer = Layer.effect(
    Database,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transaction = <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
        orDie(
          sql.withTransaction(
            sql`select set_config('tropism.project', ${projectId}, true)`.pipe(
              Effect.andThen(Effect.provideService(effect, ProjectTransaction, { projectId }))
            )
          )
        )
      return Database.of({
        inProject: <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
          againAfterClash(transaction(projectId, effect), poolLimits.clashRetries),
        inSnapshot: <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
          Effect.provideService(
            transaction(projectId, effect),
            SqlClient.BeginTransaction,
            "begin isolation level repeatable read, read only"
          ),
        attempt: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.andThen(ProjectTransaction, orDie(sql.withTransaction(effect))),
        ping: sql`select 1`.pipe(
          Effect.as(true),
          Effect.catch(() => Effect.succeed(false)),
          Effect.timeoutOrElse({ duration: poolLimits.pingTimeoutMs, orElse: () => Effect.succeed(false) })
        )
      })
    })
  )
}

/**
 * Does a transaction again when PostgreSQL broke it off for the sake of another one.
 *
 * Two transactions that waited for each other wrote nothing, so doing one of them
 * again is what the caller would have to do.
 */
const againAfterClash = <A, E, R>(
  transaction: Effect.Effect<A, E, R>,
  retries: number
): Effect.Effect<A, E, R> =>
  Effect.catchCause(transaction, (cause) =>
    retries > 0 && cause.reasons.some(isClash)
      ? Effect.andThen(Effect.sleep(poolLimits.clashPauseMs), againAfterClash(transaction, retries - 1))
      : Effect.failCause(cause)
  )

const isClash = (reason: Cause.Reason<unknown>): boolean =>
  reason._tag === "Die" &&
  reason.defect instanceof SqlError.SqlError &&
  (reason.defect.reason._tag === "DeadlockError" || reason.defect.reason._tag === "SerializationError")

/** Turns a broken database into a defect and leaves every other failure alone. */
export const orDie = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
  Effect.catchIf(
    effect,
    (error): error is E & SqlError.SqlError => error instanceof SqlError.SqlError,
    Effect.die
  ) as Effect.Effect<A, Exclude<E, SqlError.SqlError>, R>

/** The row that a statement always answers; its absence is a defect. */
export const onlyRow = <A>(rows: ReadonlyArray<A>): Effect.Effect<A> => {
  const [row] = rows
  return row === undefined
    ? Effect.die(new Error("A statement that always answers a row answered none"))
    : Effect.succeed(row)
}

/** The constraint that a write broke, when it broke a unique one. */
export const brokenUniqueKey = (error: SqlError.SqlError): string | undefined =>
  error.reason._tag === "UniqueViolation" ? error.reason.constraint : undefined

/** A pool that logs in as the server's own role; column names arrive in camelCase, JSON untouched. */
export const poolLayer = (options: {
  readonly url: Redacted.Redacted
  readonly startupParameters: Readonly<Record<string, string>>
}) =>
  PgClient.layer({
    url: options.url,
    startupParameters: options.startupParameters,
    applicationName: "tropism",
    maxConnections: poolLimits.connections,
    transformResultNames: Text.snakeToCamel,
    transformJson: false
  })

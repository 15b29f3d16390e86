/**
 * Runs transactions on PostgreSQL that see one project's rows.
 *
 * **Invariant**: all access to a project's rows requires a `ProjectTransaction`, so forgetting the project does not compile; and without
 * one, row-level security shows no rows. A database failure is a defect, not an error for each caller; the loops that must survive it and
 * the HTTP edge catch it.
 */
import type { PgConnection } from "@effect/sql-pg"
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Context, Effect, Fiber, identity, Layer, Option, Predicate } from "effect"
import { SqlClient, SqlError, type Statement } from "effect/sql"
import { poolLimits } from "./limits.ts"
import { errorCode } from "./postgres-access.ts"

/** Proof of an open transaction, with the project that it sees. */
export class ProjectTransaction extends Context.Service<
  ProjectTransaction,
  { readonly projectId: ProjectId }
>()("@tropism/server/database/ProjectTransaction") {}

/** The maximum number of statements that a connection of the pool pipelines in one write. */
export class StatementsTogether extends Context.Reference<number>(
  "@tropism/server/database/StatementsTogether",
  {
    defaultValue: () => 1
  }
) {}

/**
 * How the statements of a transaction are planned.
 * - `own`: by PostgreSQL's own rules, for filtered lists, where the values decide the best plan.
 * - `kept`: each connection keeps one generic plan per statement. PostgreSQL otherwise plans a statement five times per connection for its
 * values, and longer where a generic plan looks more expensive; for reads by key, planning costs more than execution.
 * - `byKeys`: kept, and every table is read through an index, row by row. A batch joins its items to tables, and a plan from a time when a
 * table was small would scan it whole.
 */
export type PlanMode = "own" | "kept" | "byKeys"

export class KeptPlans extends Context.Reference<PlanMode>("@tropism/server/database/KeptPlans", {
  defaultValue: () => "own"
}) {}

/** The lock timeout of a transaction's statements, in milliseconds, where it differs from the pool's. */
export class LockWaitMs extends Context.Reference<number | undefined>("@tropism/server/database/LockWaitMs", {
  defaultValue: () => undefined
}) {}

/** Keeps the plans of an effect's transactions. */
export const keepingPlans = Effect.provideService(KeptPlans, "kept")

/** The same, and every table is read through its indexes. */
export const planningByKeys = Effect.provideService(KeptPlans, "byKeys")

export class Database extends Context.Service<
  Database,
  {
    /** Runs an effect in one transaction that sees one project's rows. A failure rolls back. */
    readonly inProject: <A, E, R>(
      projectId: ProjectId,
      effect: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, Exclude<R, ProjectTransaction>>

    /** Runs reads in one snapshot of a project, however long it takes. Writes are impossible. */
    readonly inSnapshot: <A, E, R>(
      projectId: ProjectId,
      effect: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, Exclude<R, ProjectTransaction>>

    /** Runs one statement with a kept plan in its own transaction that sees one project's rows, in a single round trip. */
    readonly ask: <A>(
      projectId: ProjectId,
      statement: Statement.Statement<A>
    ) => Effect.Effect<ReadonlyArray<A>>

    /**
     * Runs the statements of a batch in one transaction and one write, planned by keys. Each sees the effects of those before it.
     *
     * With a `lockWaitMs` the batch waits no longer for a lock, and is then not retried.
     */
    readonly askBatch: (
      projectId: ProjectId,
      statements: ReadonlyArray<Statement.Statement<unknown>>,
      lockWaitMs?: number
    ) => Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>>

    /** The same with a second statement, which sees the effects of the first and of others' commits up to then. */
    readonly askBoth: <A, B>(
      projectId: ProjectId,
      first: Statement.Statement<A>,
      second: Statement.Statement<B>
    ) => Effect.Effect<readonly [ReadonlyArray<A>, ReadonlyArray<B>]>

    /**
     * Runs two effects of a transaction concurrently, so that neither waits for the other's answer; the first effect's first statement
     * reaches PostgreSQL first.
     */
    readonly together: <A, E, R, B, E2, R2>(
      first: Effect.Effect<A, E, R>,
      second: Effect.Effect<B, E2, R2>
    ) => Effect.Effect<[A, B], E | E2, R | R2 | ProjectTransaction>

    /** Runs an effect in a savepoint of an open transaction: a failure rolls back only its writes. */
    readonly attempt: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | ProjectTransaction>

    /**
     * Whether the database answers in time, accepts writes and has room for this server.
     *
     * A replica, or a read-only database, accepts none. It is full when no connection is left (in all, of this database or of this role)
     * and this server holds fewer than it needs, because it cannot get those that others hold.
     */
    readonly ping: Effect.Effect<"writable" | "readOnly" | "full" | "away">
  }
>()("@tropism/server/database/Database") {
  static readonly layer = Layer.effect(
    Database,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const together = yield* StatementsTogether
      /** A transaction begins with its project; inside an open one, the project is set explicitly. */
      const transaction = <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
        Effect.flatMap(Effect.serviceOption(sql.transactionService), (outer) =>
          Effect.provideService(
            orDie(
              sql.withTransaction(
                Option.isNone(outer) ? effect : Effect.andThen(setProject(sql, projectId), effect)
              )
            ),
            ProjectTransaction,
            { projectId }
          )
        )
      /** A whole transaction in one write, as far as connections pipeline that. */
      const atOnce = <A>(
        projectId: ProjectId,
        statements: ReadonlyArray<Statement.Statement<A>>,
        plans: PlanMode = "kept",
        lockWaitMs?: number
      ) =>
        againAfterClash(
          Effect.provideService(
            orDie(together === 1 ? sql.withTransaction(Effect.all(statements)) : inOneGo(sql, statements)),
            ProjectTransaction,
            { projectId }
          ).pipe(
            Effect.provideService(KeptPlans, plans),
            lockWaitMs === undefined ? identity : Effect.provideService(LockWaitMs, lockWaitMs)
          ),
          poolLimits.clashRetries,
          lockWaitMs === undefined ? poolLimits.lockTries : 1
        )
      return Database.of({
        inProject: <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
          againAfterClash(transaction(projectId, effect)),
        inSnapshot: <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
          Effect.provideService(
            transaction(projectId, Effect.andThen(orDie(allowIdleInTransaction(sql)), effect)),
            SqlClient.BeginTransaction,
            "begin isolation level repeatable read, read only"
          ),
        ask: <A>(projectId: ProjectId, statement: Statement.Statement<A>) =>
          Effect.map(atOnce(projectId, [statement]), ([rows = []]) => rows),
        askBatch: (projectId, statements, lockWaitMs) =>
          atOnce<unknown>(projectId, statements, "byKeys", lockWaitMs),
        askBoth: <A, B>(
          projectId: ProjectId,
          first: Statement.Statement<A>,
          second: Statement.Statement<B>
        ) =>
          Effect.map(
            atOnce<unknown>(projectId, [first, second]),
            ([firstRows = [], secondRows = []]) =>
              [firstRows as ReadonlyArray<A>, secondRows as ReadonlyArray<B>] as const
          ),
        together: (first, second) =>
          Effect.andThen(ProjectTransaction, Effect.all([first, second], { concurrency: together })),
        attempt: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.andThen(ProjectTransaction, orDie(sql.withTransaction(effect))),
        ping: look(sql).pipe(
          Effect.catch((error) =>
            Effect.succeed(errorCode(error) === tooManyConnections ? ("full" as const) : ("away" as const))
          ),
          Effect.timeoutOrElse({
            duration: poolLimits.pingTimeoutMs,
            orElse: () => Effect.succeed("away" as const)
          })
        )
      })
    })
  )
}

const tooManyConnections = "53300"

/** Queries the database's state; every role may count connections. */
const look = (
  sql: SqlClient.SqlClient
): Effect.Effect<"writable" | "readOnly" | "full" | "away", SqlError.SqlError> =>
  sql<{ isReadOnly: boolean; left: number; own: number }>`
    with people as (
      select datid, usesysid, application_name from pg_stat_activity where usesysid is not null
    )
    select
      current_setting('transaction_read_only')::bool as is_read_only,
      (select count(*)::int from people where application_name = current_setting('application_name')) as own,
      least(
        current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true)::int, 0)
          - (select count(*)::int from people),
        (select nullif(datconnlimit, -1) - (select count(*)::int from people where datid = oid)
          from pg_database where datname = current_database()),
        (select nullif(rolconnlimit, -1) - (select count(*)::int from people where usesysid = oid)
          from pg_roles where rolname = current_user)
      ) as left`.pipe(
    Effect.map(([row]) =>
      row === undefined || row.isReadOnly
        ? "readOnly"
        : row.left <= 0 && row.own < poolLimits.neededConnections
          ? "full"
          : "writable"
    )
  )

const setProject = (sql: SqlClient.SqlClient, projectId: ProjectId) =>
  sql`select set_config('tropism.project', ${projectId}, true)`

/** Lifts the idle timeout of a transaction that holds no contended lock, while its reader reads or a file is read. */
export const allowIdleInTransaction = (sql: SqlClient.SqlClient) =>
  sql`select set_config('idle_in_transaction_session_timeout', ${String(poolLimits.idleSnapshotMs)}, true)`

/** Sends a whole transaction before the first answer; if PostgreSQL refuses a statement, nothing commits. */
const inOneGo = <A>(
  sql: SqlClient.SqlClient,
  statements: ReadonlyArray<Effect.Effect<A, SqlError.SqlError>>
) =>
  Effect.scoped(
    Effect.flatMap(sql.reserve, (connection) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          yield* connection.execute("BEGIN", [], undefined)
          const asked = yield* Effect.forEach(statements, (statement) =>
            Effect.forkChild(
              Effect.exit(Effect.provideService(statement, sql.transactionService, [connection, 0])),
              { startImmediately: true }
            )
          )
          const committed = yield* Effect.exit(connection.executeRaw("COMMIT", []))
          const answers = yield* Effect.forEach(asked, (fiber) => Effect.flatten(Fiber.join(fiber)))
          yield* Effect.flatMap(committed, checkCommit)
          return answers
        })
      )
    )
  )

/**
 * Repeats a transaction that PostgreSQL aborted in favour of another one, or because it waited too long for a lock.
 *
 * A deadlocked transaction has written nothing, so repeating it is what the caller would do. After a lock timeout there is no pause,
 * because it has already waited.
 */
const againAfterClash = <A, E, R>(
  transaction: Effect.Effect<A, E, R>,
  clashes: number = poolLimits.clashRetries,
  lockTries: number = poolLimits.lockTries
): Effect.Effect<A, E, R> =>
  Effect.catchCause(transaction, (cause) =>
    lockTries > 1 && cause.reasons.some(isLongWait)
      ? againAfterClash(transaction, clashes, lockTries - 1)
      : clashes > 0 && cause.reasons.some(isClash)
        ? Effect.andThen(
            Effect.sleep(poolLimits.clashPauseMs),
            againAfterClash(transaction, clashes - 1, lockTries)
          )
        : Effect.failCause(cause)
  )

/** Repeats the whole transaction, as after a conflict: what it had read has changed. */
export const retryTransaction: Effect.Effect<never> = Effect.die(
  new SqlError.SqlError({
    reason: new SqlError.SerializationError({
      cause: new Error("Another transaction changed what this one had read"),
      operation: "look"
    })
  })
)

const isFaultOf =
  (...tags: ReadonlyArray<SqlError.SqlErrorReason["_tag"]>) =>
  (reason: Cause.Reason<unknown>): boolean =>
    reason._tag === "Die" &&
    reason.defect instanceof SqlError.SqlError &&
    tags.includes(reason.defect.reason._tag)

const isClash = isFaultOf("DeadlockError", "SerializationError")
const isLongWait = isFaultOf("LockTimeoutError")

/**
 * An error that PostgreSQL would raise again: a value or row that it cannot store, or a statement that it cannot run.
 *
 * SQLSTATE classes 22, 42, 54 and TR (a bypass of the gateway), and of 23 what one row violates by itself (23502, 23514). A key that
 * another row holds or lacks at the moment, a connection error, a conflict, a lack of resources and an operator's intervention may pass.
 */
export const findPermanentFault = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined =>
  cause.reasons
    .flatMap((reason) => (reason._tag === "Die" ? [reason.defect] : []))
    .filter((defect) => defect instanceof SqlError.SqlError)
    .find(
      ({ reason }) =>
        Predicate.hasProperty(reason.cause, "code") &&
        /^(?:22|42|54|23502|23514|TR)/.test(String(reason.cause.code))
    )

/** PostgreSQL answers ROLLBACK to the COMMIT of an aborted transaction. */
export const checkCommit = (result: unknown): Effect.Effect<void, SqlError.SqlError> =>
  (result as PgConnection.Result).command === "ROLLBACK"
    ? Effect.fail(
        new SqlError.SqlError({
          reason: new SqlError.UnknownError({
            cause: new Error("The transaction was broken off and could not be committed"),
            operation: "commit"
          })
        })
      )
    : Effect.void

/**
 * Turns a database failure into a defect and leaves every other failure alone.
 *
 * If the database failed during the rollback of another failure, the database failure comes first, because that is the one to report.
 */
export const orDie = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
  Effect.catchCause(effect, (cause) => {
    const isOfDatabase = (reason: Cause.Reason<E>) => faultOf(reason) instanceof SqlError.SqlError
    const broken = cause.reasons.filter(isOfDatabase)
    const others = cause.reasons.filter((reason) => !isOfDatabase(reason))
    return Effect.failCause(
      (broken.length === 0 ? cause : Cause.fromReasons([...broken, ...others].map(asDefect))) as Cause.Cause<
        Exclude<E, SqlError.SqlError>
      >
    )
  })

const faultOf = (reason: Cause.Reason<unknown>): unknown =>
  Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) ? reason.defect : undefined

const asDefect = <E>(reason: Cause.Reason<E>): Cause.Reason<never> =>
  Cause.isFailReason(reason) ? Cause.makeDieReason(reason.error) : reason

/** The largest id: where a newest-first list begins. */
export const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/** The only row of a statement that always returns one; its absence is a defect. */
export const onlyRow = <A>(rows: ReadonlyArray<A>): Effect.Effect<A> => {
  const [row] = rows
  return row === undefined
    ? Effect.die(new Error("A statement that always answers a row answered none"))
    : Effect.succeed(row)
}

/** The unique constraint that a write violated, if any. */
export const brokenUniqueKey = (error: SqlError.SqlError): string | undefined =>
  error.reason._tag === "UniqueViolation" ? error.reason.constraint : undefined

/**
 * The SQL of a simulated program: the server's own client over lines whose statements wait for their turn.
 *
 * Transactions, savepoints and `afterCommit` are effect's own, as in
 * production; only what a connection does is replaced. What nobody else could
 * notice takes no turn. Rows come back as the server's pool gives them: camelCase
 * names, JSON untouched.
 */
import { PgClient, type PgConnection } from "@effect/sql-pg"
import { Effect, Layer, Stream, String as Text } from "effect"
import { Reactivity } from "effect/reactivity"
import { type SqlConnection, SqlClient, SqlError, Statement as Sql } from "effect/sql"
import { checkCommit } from "../src/database/database.ts"
import { beginningWithProject } from "../src/database/pool.ts"
import type { Conductor } from "./conductor.ts"
import type { Program } from "./program.ts"
import type { Lender, Line } from "./line.ts"
import { brokenLine, makeStatement, openLine } from "./statement.ts"

type SendFor<A> = (connection: PgConnection.PgConnection) => Effect.Effect<A, SqlError.SqlError>
type Rows = ReadonlyArray<Record<string, unknown>>
type Transform = (<A extends object>(rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined

/** A `SqlClient` of one program. */
export const sqlLayer = (conductor: Conductor, program: Program, lender: Lender) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const acquirer = Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => openLine(program, lender, conductor.clock.nowMs)),
          (line) => Effect.sync(() => conductor.release(line))
        ),
        (line) => connectionOf(conductor, program, line)
      )
      return yield* SqlClient.make({
        acquirer,
        transactionAcquirer: acquirer,
        compiler: PgClient.makeCompiler(undefined, false),
        driver: "pg",
        prepareTransactionControls: true,
        releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
        commit: (connection) => Effect.flatMap(connection.executeRaw("COMMIT", []), checkCommit),
        spanAttributes: [],
        transformRows: Sql.defaultTransforms(Text.snakeToCamel, false).array
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** Statements that nobody else can notice and that lock nothing: they take no turn and go out with the next one. */
const isQuiet = /^\s*(begin|savepoint|release savepoint|select set_config)\b/i

/** What a quiet statement answers. */
const nothing: PgConnection.Result = { command: "", rowCount: 0, oid: null, rows: [], fields: [] }

const connectionOf = (conductor: Conductor, program: Program, line: Line): SqlConnection.Connection => {
  const ask = <A>(text: string, send: SendFor<A>, quietAnswer: A): Effect.Effect<A, SqlError.SqlError> =>
    isQuiet.test(text) ? keep(text, send, quietAnswer) : takeTurn(text, send)
  const keep = <A>(text: string, send: SendFor<A>, quietAnswer: A): Effect.Effect<A, SqlError.SqlError> =>
    Effect.suspend(() => {
      if (line.isBroken) return brokenLine()
      line.defer(text, send)
      return Effect.succeed(quietAnswer)
    })
  const takeTurn = <A>(text: string, send: SendFor<A>): Effect.Effect<A, SqlError.SqlError> =>
    Effect.callback<A, SqlError.SqlError>((resume) => {
      const statement = makeStatement(program, line, text, send, (answer) =>
        resume(answer as Effect.Effect<A, SqlError.SqlError>)
      )
      conductor.submit(statement)
      return Effect.callback<void>((done) => conductor.withdraw(statement, () => done(Effect.void)))
    })
  const rows = (text: string, params: ReadonlyArray<unknown>, transform: Transform, prepare: boolean) =>
    Effect.map(
      ask(text, (connection) => connection.query(text, params, prepare), nothing),
      (result): Rows => (transform === undefined ? result.rows : transform(result.rows))
    )
  const values = (text: string, params: ReadonlyArray<unknown>, prepare: boolean) =>
    ask(text, (connection) => connection.queryValues(text, params, prepare), [])
  return {
    execute: beginningWithProject((text, params, transform) => rows(text, params, transform, true), 1, 0),
    executeUnprepared: beginningWithProject(
      (text, params, transform) => rows(text, params, transform, false),
      1,
      0
    ),
    executeRaw: (text, params) => ask(text, (connection) => connection.query(text, params), nothing),
    executeValues: (text, params) => values(text, params, true),
    executeValuesUnprepared: (text, params) => values(text, params, false),
    executeStream: () => Stream.die(new Error("No stage of the server streams rows"))
  }
}

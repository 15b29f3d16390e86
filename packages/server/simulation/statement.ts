/**
 * A statement that waits for its turn, and the connection that it will go through.
 *
 * Connections to PostgreSQL are kept and lent, because opening one takes longer
 * than most simulations; a program sees a `Line`, which is new to it and breaks
 * when the program dies: what it had not committed is rolled back at that
 * moment, as PostgreSQL does when a connection drops.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Cause, Effect, Exit } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { tellTime } from "./database-clock.ts"
import type { Lender, Line, Send } from "./line.ts"
import type { Program } from "./program.ts"
import { isCommit, type Refusal, refused } from "./refusals.ts"

export type Answer = Exit.Exit<unknown, SqlError>

export interface Statement {
  readonly kind: "statement"
  readonly program: Program
  readonly line: Line
  readonly text: string
  /** Whether locks may be released by it. */
  readonly mayRelease: boolean
  /** Sends it, or has PostgreSQL refuse it. */
  readonly begin: (refusal?: Refusal) => Promise<Attempt>
  readonly answer: (answer: Answer) => void
  /** Called when it is over, for whoever was told to wait for that. */
  whenOver?: (() => void) | undefined
}

/** A statement under way. */
export interface Attempt {
  readonly statement: Statement
  readonly processId: number
  readonly settled: Promise<void>
  exit: Answer | undefined
  /** The backends that hold what it waits for, as far as is known. */
  blockers: ReadonlyArray<number>
}

/** A new line of a program. */
export const openLine = (program: Program, lender: Lender, nowMs: () => number): Line => {
  let borrowed: PgConnection.PgConnection | undefined
  let deferred: Array<Send> = []
  let isOpen = false
  const end = async (): Promise<void> => {
    program.lines.delete(line)
    const connection = borrowed
    deferred = []
    borrowed = undefined
    if (connection === undefined) return
    if (isOpen) await Effect.runPromise(Effect.ignore(connection.query("ROLLBACK", [])))
    isOpen = false
    lender.takeBack(connection)
  }
  const line: Line = {
    isBroken: false,
    connection: async () => (borrowed ??= await lender.borrow()),
    defer: (text, send) => {
      const begins = /^begin/i.test(text)
      if (begins) isOpen = true
      deferred.push(...(begins ? [tellTime(nowMs), send] : [send]))
    },
    takeDeferred: () => {
      const taken = isOpen ? deferred : [tellTime(nowMs)]
      deferred = []
      return taken
    },
    note: (text, succeeded) => {
      if (/^(commit|rollback\s*$)/i.test(text) && succeeded) isOpen = false
    },
    inTransaction: () => isOpen,
    drop: () => {
      line.isBroken = true
      return end()
    },
    giveBack: end
  }
  program.lines.add(line)
  return line
}

/** What one learns whose connection broke. */
export const brokenLine = (): Exit.Exit<never, SqlError> =>
  Exit.fail(
    new SqlError({
      reason: new ConnectionError({ cause: new Error(brokenWords), operation: "execute" })
    })
  )

export const brokenWords = "The connection broke"

/** A statement of a line; `send` is how it is put to the connection. */
export const makeStatement = (
  program: Program,
  line: Line,
  text: string,
  send: Send,
  answer: Statement["answer"]
): Statement => {
  const statement: Statement = {
    kind: "statement",
    program,
    line,
    text,
    mayRelease: !line.inTransaction() || /^(commit|rollback)/i.test(text),
    begin: async (refusal) => {
      if (line.isBroken) return over(statement, brokenLine())
      const connection = await line.connection()
      const attempt: Attempt = { ...over(statement, undefined), processId: connection.processId }
      const own = refusal === undefined ? [send] : refused(text, refusal)
      const sent = [...line.takeDeferred(), ...own].map((one) => Effect.runPromiseExit(one(connection)))
      const settled = Promise.all(sent).then((exits) => {
        const exit = exits.find(Exit.isFailure) ?? exits.at(-1)
        if (exit === undefined) return
        attempt.exit = exit
        line.note(text, Exit.isSuccess(exit) || (refusal !== undefined && isCommit(text)))
      })
      return Object.assign(attempt, { settled })
    },
    answer
  }
  return statement
}

/** What PostgreSQL said against a statement. */
export const errorText = (answer: Answer): string => {
  const error = Exit.isFailure(answer) ? Cause.squash(answer.cause) : undefined
  const cause = error instanceof SqlError ? error.reason.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

const over = (statement: Statement, exit: Answer | undefined): Attempt => ({
  statement,
  processId: 0,
  settled: Promise.resolve(),
  exit,
  blockers: []
})

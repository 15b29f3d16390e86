/**
 * What PostgreSQL itself says against a statement for reasons that pass, and how it is made to say so.
 *
 * It is asked in the statement's place to raise the error. So the transaction is
 * broken off as it truly would be, and the error comes the way that all of them
 * come; the statement itself has done nothing.
 */
import type { Send } from "./line.ts"

/** Each state that is drawn, in PostgreSQL's words for it. */
export const refusals = {
  "40001": "could not serialize access due to concurrent update",
  "40P01": "deadlock detected",
  "55P03": "canceling statement due to lock timeout",
  "57014": "canceling statement due to user request"
} as const

export type Refusal = keyof typeof refusals

export const isRefusal = (fate: string): fate is Refusal => Object.hasOwn(refusals, fate)

/** By these words a log tells it from one that nobody drew. */
export const wordsOf = (refusal: Refusal): string => `${refusals[refusal]}, as it was drawn`

/** Whether PostgreSQL may say this against such a statement: it always rolls back, and no commit waits for a lock. */
export const mayBeRefused = (text: string, refusal: Refusal): boolean =>
  !/^\s*rollback/i.test(text) && (refusal !== "55P03" || !isCommit(text))

export const isCommit = (text: string): boolean => /^\s*commit/i.test(text)

/** What is sent in place of a statement that is refused: behind a commit that fails no transaction is open. */
export const refused = (text: string, refusal: Refusal): ReadonlyArray<Send> => {
  const raise: Send = (connection) =>
    connection.query(
      `do $$ begin raise exception using errcode = '${refusal}', message = '${wordsOf(refusal)}'; end $$`,
      []
    )
  return isCommit(text) ? [raise, (connection) => connection.query("ROLLBACK", [])] : [raise]
}

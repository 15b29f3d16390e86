/**
 * The steps of doing what is wanted: calls of tools that are made, and the reply at the end.
 *
 * A doing is a generator that yields calls and is given their outcomes, so the
 * same words and outcomes always come to the same point.
 */
import type { Dialogue, Listed, ListStatus, Question } from "./todo-intents.ts"
import { readListed } from "./todo-results.ts"

export interface Call {
  readonly tool: string
  readonly arguments: Readonly<Record<string, string | number>>
}

export interface Outcome {
  readonly result: unknown
  readonly isError: boolean
}

export interface Reply {
  readonly text: string
  readonly dialogue: Dialogue
}

export type Doing<A> = Generator<ReadonlyArray<Call>, A, ReadonlyArray<Outcome>>

/** A reply that asks, and what the answer will be to. */
export const asking = (text: string, question: Question, dialogue: Dialogue): Reply => ({
  text,
  dialogue: { ...dialogue, question }
})

/** The todos of this state, or why they cannot be told. */
export function* listed(status: ListStatus): Doing<ReadonlyArray<Listed> | { readonly error: string }> {
  const [outcome] = yield [{ tool: "list_tasks", arguments: { status } }]
  return readListed(outcome)
}

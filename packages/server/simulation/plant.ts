/**
 * A fault that is planted in the rows that a simulation left, to see its checker find it.
 */
import type { Acknowledged } from "./people.ts"
import type { Remains } from "./remains.ts"

export interface Plant {
  readonly checker: string
  readonly fault: string
  /** Statements; `$1` is the project. */
  readonly sql: ReadonlyArray<string>
  /** What somebody would have noticed. */
  readonly testimony?: (remains: Remains) => Partial<Acknowledged>
}

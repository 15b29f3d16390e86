/**
 * Lists: newest first, a cursor to go on and a limit that is clamped, never refused for being large.
 */
import { Schema } from "effect"

export const pageBounds = { defaultLimit: 50, maxLimit: 200 } as const

/** The query of every list. `cursor` is what the page before gave as `nextCursor`. */
export const PageQuery = {
  cursor: Schema.optional(Schema.String.check(Schema.isBetweenLength(1, 200))),
  limit: Schema.optional(Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)))
}

export interface PageRequest {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export const Page = <S extends Schema.Top>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.NullOr(Schema.String) })

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

export const clampLimit = (limit: number | undefined): number =>
  Math.min(limit ?? pageBounds.defaultLimit, pageBounds.maxLimit)

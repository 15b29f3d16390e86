/**
 * Lists: newest first, a cursor to go on and a limit that is clamped, never refused for being large.
 */
import { Schema, SchemaGetter } from "effect"

export const pageBounds = { defaultLimit: 50, maxLimit: 200 } as const

/** A parameter that may be left out, with what the contract says of it. */
export const told = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optional(schema).pipe(Schema.annotateKey({ description }))

/** The query of every list. `cursor` is what the page before gave as `nextCursor`. */
export const PageQuery = {
  cursor: told(
    Schema.String.check(Schema.isBetweenLength(1, 700)),
    "Goes on behind the page of this list that gave this as nextCursor; the other parameters stay the same"
  ),
  limit: told(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)),
    `At most so many, from 1; ${pageBounds.defaultLimit} by itself, and more than ${pageBounds.maxLimit} is taken as ${pageBounds.maxLimit}`
  )
}

/** Values of one parameter, parted by commas: any of them will do. */
export const anyOf = <S extends Schema.Top & { readonly Encoded: string }>(item: S) =>
  Schema.String.pipe(
    Schema.decodeTo(Schema.Array(item), {
      decode: SchemaGetter.transform((text: string) => text.split(",")),
      encode: SchemaGetter.transform((items: ReadonlyArray<string>) => items.join(","))
    })
  )

export interface PageRequest {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
  /** What the list is called where it has no address of its own. */
  readonly list?: string | undefined
}

export const Page = <S extends Schema.Top>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.NullOr(Schema.String) })

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

export const clampLimit = (limit: number | undefined): number =>
  Math.min(limit ?? pageBounds.defaultLimit, pageBounds.maxLimit)

/** A place in a log: its start, its end, or after the event with a number. */
export const LogPlace = Schema.String.check(
  Schema.isPattern(/^(?:start|now|\d{1,15})$/, { expected: "a whole number from 0, start or now" })
).pipe(Schema.decodeTo(Schema.Union([Schema.Literals(["start", "now"]), Schema.FiniteFromString])))
export type LogPlace = typeof LogPlace.Type

/** Where a log is read from, by its own numbers. */
export const After = {
  after: told(
    LogPlace,
    "Events after the one with this number, `start` (all events) or `now` (only events published from now on). Without it a stream begins `now` and a page at the `start`"
  )
}

/**
 * The orders in which objects are listed, and the places after which a list goes on.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A place holds what its order compares, so a list goes on where it was, also
 * when the object that stood there is gone. Every order but `relevance` is an
 * index's.
 */
import type { SqlClient, Statement } from "effect/sql"

/** What comes first: the newest, the last changed, what fits the words best, or by the alphabet. */
export type ObjectOrder = "createdAt" | "updatedAt" | "relevance" | "name" | "type"

const id = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

/** How a place looks that is an instant in microseconds and an id. */
export const instantPlace = new RegExp(`^\\d{1,17}~${id}$`)

const namePlace = new RegExp(`^[A-Za-z][A-Za-z0-9_.-]{0,99}~[A-Za-z0-9_-]{0,540}~${id}$`)

/** How the places of each order look. */
export const placePatterns: Readonly<Record<ObjectOrder, RegExp>> = {
  createdAt: new RegExp(`^${id}$`),
  updatedAt: instantPlace,
  relevance: new RegExp(`^\\d\\.?\\d{0,12}(e-\\d{1,2})?~${id}$`),
  name: namePlace,
  type: namePlace
}

/** Parts of a statement that lists objects. */
export interface Ordering {
  /** The place of a row. */
  readonly place: Statement.Fragment
  readonly by: Statement.Fragment
  /** What is true of every row, and has to be said for the order's index to be used. */
  readonly among: Statement.Fragment
  /** Whether a row comes after a place. */
  readonly behind: (place: string) => Statement.Fragment
}

export const ordering = (sql: SqlClient.SqlClient, order: ObjectOrder): Ordering => {
  switch (order) {
    case "createdAt":
      return {
        place: sql.literal("id::text"),
        by: sql.literal("id desc"),
        among: sql.literal("true"),
        behind: (place) => sql`id < ${place}::uuid`
      }
    case "updatedAt":
      return {
        place: sql.literal("(extract(epoch from updated_at) * 1000000)::bigint || '~' || id"),
        by: sql.literal("updated_at desc, id desc"),
        among: sql.literal("true"),
        behind: (place) => {
          const [micros, id] = place.split("~")
          return sql`(updated_at, id) < ('epoch'::timestamptz + ${micros}::bigint * interval '1 microsecond', ${id}::uuid)`
        }
      }
    case "relevance":
      return {
        place: sql.literal("rank || '~' || id"),
        by: sql.literal("rank desc, id desc"),
        among: sql.literal("true"),
        behind: (place) => {
          const [rank, id] = place.split("~")
          // A place that somebody made up may be nearer to nothing than what PostgreSQL takes for a `real`.
          return sql`(rank::float8, id) < (${Math.fround(Number(rank))}::float8, ${id}::uuid)`
        }
      }
    case "name":
      return {
        place: sql.literal(nameAndPlace),
        by: sql.literal(`${name}, id`),
        among: sql.literal(isNamed),
        behind: (place) => {
          const { known, id } = nameIn(place)
          return sql`(${sql.literal(name)}, id) > (${known}, ${id}::uuid)`
        }
      }
    case "type":
      return {
        place: sql.literal(nameAndPlace),
        by: sql.literal(`type, ${name}, id`),
        among: sql.literal(isNamed),
        behind: (place) => {
          const { type, known, id } = nameIn(place)
          return sql`(type, ${sql.literal(name)}, id) > (${type}, ${known}, ${id}::uuid)`
        }
      }
  }
}

/** As the indexes have it. */
const name = `kb.sorting_name(key, properties) collate "C"`

const isNamed = "kb.sorting_name(key, properties) is not null"

/** A name may hold anything, so in a place it is base64url. */
const nameAndPlace = `type || '~' || translate(encode(convert_to(${name}, 'UTF8'), 'base64'), E'+/=\\n', '-_') || '~' || id`

const nameIn = (place: string) => {
  const [type, base64 = "", id] = place.split("~")
  // A cursor that nobody gave may hold the one character that no text of the database can.
  return { type, known: Buffer.from(base64, "base64url").toString("utf8").replaceAll("\0", ""), id }
}

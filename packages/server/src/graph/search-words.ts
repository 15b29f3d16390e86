/**
 * Turns what somebody types into a full-text query that cannot be wrong.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Words are parted where `kb.search_words` parts them in the database, and only
 * the database lower-cases them: JavaScript does it in another way, to `Σ` and
 * `İ` for instance. Only words get into the query, so none of its operators can
 * come from outside.
 */
import type { SqlClient } from "effect/sql"
import { graphLimits } from "../limits.ts"

const separators =
  // oxlint-disable-next-line no-control-regex -- control characters part words
  /[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u2000-\u206f\u3000-\u3020]+/u

/** The words of a text; the last characters of a word need not be typed. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .split(separators)
    .filter((word) => word !== "")
    .slice(0, graphLimits.searchWords)

/** The query that all words, or beginnings of words, occur; undefined where there is no word. */
export const searchQuery = (text: string): string | undefined => {
  const words = wordsOf(text)
  return words.length === 0 ? undefined : words.map((word) => `'${word}':*`).join(" & ")
}

/** The query as it is asked: lower-cased like the text in which it is looked for. */
export const asked = (sql: SqlClient.SqlClient, query: string) =>
  sql`to_tsquery('simple', lower(${query}::text))`

/**
 * The columns of budgets, as they are read.
 */
import type { ChainUse } from "@tropism/domain/chain"
import type { SqlClient, Statement } from "effect/sql"

/** The day that it is for a budget, on the database's clock: UTC, whatever the session speaks. */
export const today = (sql: SqlClient.SqlClient) => sql`to_char(now() at time zone 'UTC', 'YYYY-MM-DD')`

/** The rows of an agent's day, of which `day` is a date: a day has several, so that its runs do not wait for one another. */
export const rowsOfDay = (sql: SqlClient.SqlClient, day: Statement.Fragment) =>
  sql`period >= ${day} and period < ${day} || '~'`

/** The counting columns of a budget's row. */
export interface UseRow {
  readonly runs: number
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly costMicros: bigint
}

export const toUse = (row: UseRow): ChainUse => ({
  runs: row.runs,
  inputTokens: Number(row.inputTokens),
  outputTokens: Number(row.outputTokens),
  costMicros: Number(row.costMicros)
})

/** A usage as JSON, from columns of `kb.budgets` or from sums of them. */
export const usageJson = (sql: SqlClient.SqlClient, from: (column: string) => string): Statement.Fragment => {
  const of = (column: string) => sql.literal(from(column))
  return sql`jsonb_strip_nulls(jsonb_build_object('inputTokens', ${of("input_tokens")}, 'outputTokens', ${of("output_tokens")},
    'cachedInputTokens', nullif(${of("cached_input_tokens")}, 0), 'cacheWriteTokens', nullif(${of("cache_write_tokens")}, 0),
    'reasoningTokens', nullif(${of("reasoning_tokens")}, 0)))`
}

/**
 * Says a property filter in SQL, with every value a bound parameter.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * It means what `matches` of `domain/property-filter` means, and a test proves
 * that on many values. No expression here can fail on any document, because the
 * database may evaluate it before it looks whose document it is.
 */
import { pathSteps, type PropertyFilter, type PropertyFilters } from "@tropism/domain/property-filter"
import type { Schema } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** The conditions, for a statement that has a column `properties`. */
export const filterConditions = (
  sql: SqlClient.SqlClient,
  filters: PropertyFilters
): ReadonlyArray<Statement.Fragment> => filters.map((filter) => condition(sql, filter))

const condition = (sql: SqlClient.SqlClient, { property, op, value }: PropertyFilter): Statement.Fragment => {
  const steps = pathSteps(property)
  // Step by step with a text: lists are not walked into, and what is missing is null.
  const found = steps.reduce<Statement.Fragment>(
    (at, step) => sql`${at} -> ${step}::text`,
    sql.literal("properties")
  )
  switch (op) {
    case "exists":
      return value === true ? sql`(${found}) is not null` : sql`(${found}) is null`
    case "ne":
      return sql`(${found}) is distinct from ${json(sql, value)}`
    case "eq":
      return equals(sql, found, steps, value)
    case "in":
      return Array.isArray(value) && value.length > 0
        ? sql.or(value.map((choice) => equals(sql, found, steps, choice)))
        : sql.literal("false")
    case "contains":
      return contains(sql, found, value)
    case "startsWith":
      return sql`(jsonb_typeof(${found}) = 'string' and starts_with((${found}) #>> '{}', ${String(value)}))`
    default:
      return ordered(sql, found, op, value)
  }
}

/** Containment follows from equality and has an index. */
const equals = (
  sql: SqlClient.SqlClient,
  found: Statement.Fragment,
  steps: ReadonlyArray<string>,
  value: Schema.Json
) => {
  const document = steps.reduceRight<Schema.Json>((inner, step) => Object.fromEntries([[step, inner]]), value)
  return sql`(properties @> ${json(sql, document)} and (${found}) = ${json(sql, value)})`
}

const contains = (sql: SqlClient.SqlClient, found: Statement.Fragment, value: Schema.Json) => {
  const inList = sql`exists (
    select from jsonb_array_elements(case jsonb_typeof(${found}) when 'array' then ${found} else '[]' end) item
    where item = ${json(sql, value)})`
  return typeof value === "string"
    ? sql`(${inList} or (jsonb_typeof(${found}) = 'string' and strpos((${found}) #>> '{}', ${value}) > 0))`
    : inList
}

const comparisons = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const

const ordered = (
  sql: SqlClient.SqlClient,
  found: Statement.Fragment,
  op: keyof typeof comparisons,
  value: Schema.Json
) => {
  const compares = sql.literal(comparisons[op])
  return typeof value === "string"
    ? sql`(jsonb_typeof(${found}) = 'string' and ((${found}) #>> '{}') collate "C" ${compares} ${value} collate "C")`
    : sql`(jsonb_typeof(${found}) = 'number' and (${found}) ${compares} ${json(sql, value)})`
}

const json = (sql: SqlClient.SqlClient, value: Schema.Json) => sql`${JSON.stringify(value)}::text::jsonb`

/**
 * Proves that what the database computes is what the domain means: filters, merge patches, words of a search.
 */
import { describe, expect, layer } from "@effect/vitest"
import { mergePatch, type Properties } from "@tropism/domain/json"
import {
  FilterOperator,
  matches,
  PropertyFilter,
  type PropertyFilters
} from "@tropism/domain/property-filter"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { mergePatchExamples } from "../../../domain/testing/json-examples.ts"
import { serverSql } from "../../testing/server-sql.ts"
import { filterConditions, asked, searchQuery, wordsOf } from "./objects.ts"

/** Values that are near to one another, so that each operator has to tell them apart. */
const values: ReadonlyArray<Schema.Json> = [
  null,
  true,
  false,
  0,
  1,
  -1.5,
  9007199254740991,
  1e21,
  1e-7,
  0.1 + 0.2,
  "",
  "a",
  "A",
  "ab",
  "ba",
  "1",
  "null",
  "é",
  "\uFF5E",
  "\u{1F600}",
  'a"b\\c\n',
  [],
  ["a"],
  ["a", "b"],
  ["b", "a"],
  [1, "a", null, { a: 1 }],
  [["a"]],
  {},
  { a: 1 },
  { a: 1, b: 2 },
  { a: { a: "a" } }
]

const documents: ReadonlyArray<Properties> = [
  {},
  ...values.flatMap((value) => [
    { a: value },
    { a: { b: value } },
    { "/": value, "": value, "a.b": value, other: "a" }
  ])
]

const paths = ["a", "/a/b", "/a/0", "a.b", "/~1", "/", "missing"]

const filters = paths.flatMap((property) =>
  FilterOperator.literals.flatMap((op) =>
    [...values, [...values]]
      .map((value) => ({ property, op, value }))
      .filter((filter) => Result.isSuccess(Schema.decodeUnknownResult(PropertyFilter)(filter)))
  )
)

/** Which of the documents the database finds. */
const found = Effect.fn("found")(function* (all: ReadonlyArray<Properties>, wanted: PropertyFilters) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly place: number }>`
    select place::int as place from jsonb_array_elements(${JSON.stringify(all)}::text::jsonb) with ordinality as document(properties, place)
    where ${sql.and(filterConditions(sql, wanted))} order by place`
  return rows.map(({ place }) => all[place - 1])
})

const smallJson = Arbitrary.schema(
  Schema.Record(
    Schema.Literals(["a", "b", "c"]),
    Schema.Union([Schema.Json, Schema.Record(Schema.Literals(["a", "b"]), Schema.NullOr(Schema.Json))])
  )
)

/** What PostgreSQL can keep at all; the edge refuses the rest. */
const isKept = (value: unknown): boolean => !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value))

layer(serverSql)((it) => {
  describe("A property filter in SQL", () => {
    it.effect.each(FilterOperator.literals.map((op) => [op] as const))(
      "finds what the domain's filter matches, for every pair of near values: %s",
      ([op]) =>
        Effect.gen(function* () {
          const ofOperator = filters.filter((filter) => filter.op === op)
          expect(ofOperator.length).toBeGreaterThan(paths.length)
          for (const filter of ofOperator) {
            expect([filter, yield* found(documents, [filter])]).toEqual([
              filter,
              documents.filter((document) => matches([filter], document))
            ])
          }
        })
    )

    it.effect.prop(
      "agrees on any documents, also where several conditions must hold",
      [Arbitrary.array(smallJson, { minLength: 1, maxLength: 20 }), smallJson],
      ([all, other]) =>
        Effect.gen(function* () {
          const kept = all.filter(isKept) as ReadonlyArray<Properties>
          const conditions = Object.entries(other)
            .filter(([, value]) => isKept(value))
            .map(([property, value], place) => ({
              property,
              op: FilterOperator.literals[place] ?? "eq",
              value: value as Schema.Json
            }))
            .filter((filter) => Result.isSuccess(Schema.decodeUnknownResult(PropertyFilter)(filter)))
          expect(yield* found(kept, conditions)).toEqual(
            kept.filter((document) => matches(conditions, document))
          )
        }),
      { arbitrary: { runs: 100 } }
    )
  })

  describe("A merge patch in SQL (RFC 7396)", () => {
    const merged = Effect.fn("merged")(function* (target: unknown, patch: unknown) {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ readonly result: unknown }>`
        select kb.merge_patch(${JSON.stringify(target)}::text::jsonb, ${JSON.stringify(patch)}::text::jsonb) as result`
      return row?.result
    })

    it.effect.each(mergePatchExamples)("%j patched by %j is %j", ([target, patch, result]) =>
      Effect.gen(function* () {
        expect(yield* merged(target, patch)).toEqual(result)
        expect(mergePatch(target, patch)).toEqual(result)
      })
    )

    it.effect.prop(
      "gives what the domain's gives",
      [smallJson, smallJson],
      ([target, patch]) =>
        Effect.gen(function* () {
          if (!isKept([target, patch])) return
          const plain = JSON.parse(JSON.stringify([target, patch])) as [Schema.Json, Schema.Json]
          expect(yield* merged(...plain)).toEqual(mergePatch(...plain))
        }),
      { arbitrary: { runs: 300 } }
    )
  })

  describe("The words of a search", () => {
    it.effect.each(
      [
        "node_modules/@effect/sql-pg",
        "Left-Pad 1.2.3 “quoted” — dash…end",
        "ÀÉÎ straße\tnew\nline",
        "漢字 かな。点",
        "a'b:*&|!(c) <-> \\ \u{1F600}",
        "ΟΔΟΣ ΑΧΙΛΛΕΩΣ, Σ",
        "İstanbul DİYARBAKIR",
        "ẞ \u212Aelvin ǅ Ⅷ"
      ].map((text) => ({ text }))
    )("are the same in the program and in the database: $text", ({ text }) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ readonly words: string; readonly lowered: string }>`
          select trim(kb.search_words(${text})) as words, lower(${wordsOf(text).join(" ")}::text) as lowered`
        expect(row?.words).toBe(row?.lowered)
        const [fit] = yield* sql<{ readonly isFound: boolean }>`
          select kb.search_vector('Thing', ${text}, '{}') @@ ${asked(sql, searchQuery(text) ?? "")} as is_found`
        expect(fit?.isFound).toBe(true)
      })
    )

    it.effect("make no query that the database refuses, whatever is typed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const odd = Array.from({ length: 0x2_100 }, (_, code) => String.fromCodePoint(code + 1))
        for (let at = 0; at < odd.length; at += 9) {
          const query = searchQuery(odd.slice(at, at + 9).join(at % 2 === 0 ? "" : " "))
          if (query !== undefined) yield* sql`select ${asked(sql, query)}`
        }
        expect(searchQuery(" !& ")).toBeUndefined()
      })
    )
  })
})

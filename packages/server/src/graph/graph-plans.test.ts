/**
 * Proves that reads are served by their indexes, under the server's own role and row-level security.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { ask } from "../../testing/owner-rows.ts"
import { poolLayer } from "../database/pool.ts"
import { ordering, filterConditions, asked, searchQuery } from "./objects.ts"

const projects = ["01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"] as const
const objects = 20_000

class Furnished extends Context.Service<Furnished, Record<never, never>>()("test/Furnished") {}

/** Two projects with many packages each, of which few have the type, the licence or the word that is looked for. */
const furnished = Layer.unwrap(
  Effect.gen(function* () {
    const access = yield* freshDatabase
    for (const [place, project] of projects.entries()) {
      yield* ask(access, `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`)
      yield* ask(
        access,
        `insert into kb.graph_objects (id, project_id, type, key, properties, version)
         select ('0199000${place}-0000-7000-8001-' || lpad(n::text, 12, '0'))::uuid, '${project}', case when n % 50 = 7 then 'Rare' else 'Package' end, 'pkg-' || n,
           jsonb_build_object('license', case when n % 1000 = 0 then 'WTFPL' else 'MIT' end, 'size', n, 'about', 'word' || n % 500), 1
         from generate_series(1, ${objects}) n`
      )
    }
    yield* ask(access, "vacuum analyze kb.graph_objects")
    return Layer.merge(
      Layer.succeed(Furnished, {}),
      poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
    )
  })
)

/** The plan of a read of the first project's objects, and how many it finds. */
const explain = Effect.fn("explain")(function* (condition: Statement.Fragment, order: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select set_config('tropism.project', ${projects[0]}, true)`
      const rows = yield* sql<Record<string, string>>`
        explain (analyze, timing off, costs off) select id from kb.project_objects where ${condition}
        order by ${sql.literal(order)} limit 50`
      const plan = rows.map((row) => Object.values(row)[0]).join("\n")
      const [{ count } = { count: 0 }] = yield* sql<{ readonly count: number }>`
        select count(*)::int as count from kb.project_objects where ${condition}`
      return { plan, count }
    })
  )
})

layer(furnished)((it) => {
  describe("The index serves", () => {
    it.effect("equality of a property, and what is in a list", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        for (const filter of [
          { property: "license", op: "eq", value: "WTFPL" },
          { property: "license", op: "in", value: ["WTFPL", "GPL"] }
        ] as const) {
          const { plan, count } = yield* explain(sql.and(filterConditions(sql, [filter])), "id desc")
          expect(plan).toContain("graph_objects_properties")
          expect(plan).not.toContain("Seq Scan")
          expect(count).toBe(objects / 1_000)
        }
      })
    )

    it.effect("the words of a search", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { plan, count } = yield* explain(
          sql`search @@ ${asked(sql, searchQuery("Word77 pkg") ?? "")}`,
          "id desc"
        )
        expect(plan).toContain("graph_objects_search")
        expect(plan).not.toContain("Seq Scan")
        expect(count).toBe(objects / 500)
      })
    )

    it.effect("the order of the last change, and no page reads more than itself", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { plan } = yield* explain(sql`true`, "updated_at desc, id desc")
        expect(plan).toContain("graph_objects_updated")
        expect(plan).not.toContain("Sort")
      })
    )
  })

  describe.each([
    { order: "name", type: undefined, index: "graph_objects_named" },
    { order: "type", type: undefined, index: "graph_objects_typed" },
    { order: "name", type: "Rare", index: "graph_objects_typed" }
  ] as const)("The order by $order, of the type $type", ({ order, type, index }) => {
    it.effect("is an index's, and no page reads more than itself, however far it is", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { place, by, among, behind } = ordering(sql, order)
        const only = type === undefined ? sql`true` : sql`type = ${type}`
        const plans = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select set_config('tropism.project', ${projects[0]}, true)`
            const [far] = yield* sql<{ readonly place: string }>`
              select ${place} as place from kb.project_objects where ${only} order by ${by} offset 300 limit 1`
            return yield* Effect.forEach([undefined, far?.place], (after) =>
              Effect.map(
                sql<Record<string, string>>`
                  explain (analyze, timing off, costs off) select id, ${place} as place from
                  (select * from kb.project_objects where ${only}) found
                  where ${among} and ${after === undefined ? sql`true` : behind(after)} order by ${by} limit 50`,
                (rows) => rows.map((row) => Object.values(row)[0]).join("\n")
              )
            )
          })
        )
        for (const plan of plans) {
          expect(plan).toContain(index)
          expect(plan).not.toContain("Sort")
          expect(plan).not.toContain("Rows Removed by Filter")
          expect(plan).toContain("rows=50")
        }
        expect(plans).toHaveLength(2)
      })
    )
  })

  describe("An index of an order", () => {
    it.effect("serves no other read, also where the planner knows nothing of the table", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const all = yield* sql<{ readonly definition: string }>`
          select pg_get_indexdef(indexrelid) as definition from pg_index
          where indexrelid in ('kb.graph_objects_named'::regclass, 'kb.graph_objects_typed'::regclass)`
        expect(all).toHaveLength(2)
        for (const { definition } of all) expect(definition).toMatch(/WHERE .*sorting_name.* IS NOT NULL/)
        const { plan } = yield* explain(sql`type = 'Package' and key = 'pkg-77'`, "id desc")
        expect(plan).toContain("graph_objects_key")
      })
    )
  })

  describe("What is computed of an object's row", () => {
    it.effect("keeps its plan: in SQL it would be parsed and planned anew in each write", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const computed = yield* sql<{ readonly name: string; readonly language: string }>`
          select distinct proc.proname as name, lang.lanname as language
          from pg_depend dep join pg_proc proc on proc.oid = dep.refobjid join pg_language lang on lang.oid = proc.prolang
          where dep.refclassid = 'pg_proc'::regclass and proc.pronamespace = 'kb'::regnamespace and (
            dep.objid in (select oid from pg_attrdef where adrelid = 'kb.graph_objects'::regclass)
            or dep.objid in (select indexrelid from pg_index where indrelid = 'kb.graph_objects'::regclass))
          order by name`
        expect(computed).toEqual([
          { name: "search_vector", language: "plpgsql" },
          { name: "sorting_name", language: "plpgsql" }
        ])
      })
    )
  })

  describe("The view of the project's objects", () => {
    it.effect("shows none where no project is set, and no other project's", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from kb.project_objects limit 1`).toEqual([])
        const { count } = yield* explain(sql`true`, "id desc")
        expect(count).toBe(objects)
      })
    )
  })
})

/**
 * What the graph costs follows what is asked of it, not what there is.
 *
 * The tables are filled by the owner of the database; then each verb is used as
 * the server does it, under its own role and row-level security. PostgreSQL
 * counts the rows of tables that a transaction has looked at.
 */
import { describe, expect, layer } from "@effect/vitest"
import { direct } from "@tropism/domain/actor"
import { ObjectId, ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../src/database/database.ts"
import { Gateway } from "../src/graph/gateway.ts"
import { Provenances } from "../src/graph/provenance.ts"
import { Relationships } from "../src/graph/relationships.ts"
import { filledBy } from "../testing/filled-database.ts"
import { rowsReadIn, times } from "../testing/rows-read.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")

const [objects, relationships, events, busyEvents, agents] = [1, 2, 3, 4, 5] as const

/** An id of one of the tables that are filled. */
const idOf = (kind: number, number: number): string =>
  `0199000${kind}-0000-7000-8000-${number.toString(16).padStart(12, "0")}`

/** The same in SQL, for a number that a statement counts. */
const sqlId = (kind: number, number: string): string =>
  `('0199000${kind}-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

/** How many rows there are in each of the large tables; no verb may look at a tenth of that. */
const many = 10_000
const few = 1_000
/** Agents, of which each has handled as many objects as the others. */
const handlers = 300

/** The first relationships begin or end at it, so many, and one does both. */
const around = many / 4
const hub = ObjectId.make(idOf(objects, many + 2))
/** It has been changed as often as there are others. */
const busy = ObjectId.make(idOf(objects, 2))

/** The version of the busy object that changed a property of which the others say nothing. */
const seldom = many / 2

const filling: ReadonlyArray<string> = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.graph_objects (id, project_id, type, properties, version, actor_type, actor_id)
    select ${sqlId(objects, "n")}, '${project}', 'Package', case when n = 2 then '{"name": "busy", "seldom": 2, "size": 1}'::jsonb else '{"size": 1}' end,
      case when n = 2 then ${many} else 1 end, 'user', 'ada' from generate_series(1, ${many} + 2) n`,
  `insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id)
    select ${sqlId(relationships, "n")}, '${project}', 'NEAR',
      case when n <= ${around} and n % 2 = 0 then '${hub}' else ${sqlId(objects, "n")} end,
      case when n <= ${around} and n % 2 = 1 then '${hub}' else ${sqlId(objects, "n + 1")} end, '{}', 1, 'user', 'ada'
    from generate_series(1, ${many}) n`,
  `insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id)
    values (${sqlId(relationships, String(many + 1))}, '${project}', 'NEAR', '${hub}', '${hub}', '{}', 1, 'user', 'ada')`,
  `insert into kb.graph_relationship_versions (relationship_id, version, project_id, type, properties, actor_type, actor_id, event_id)
    select id, 1, project_id, 'created', properties, actor_type, actor_id, id from kb.graph_relationships`,
  `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
      actor_type, actor_id, root_event_id, depth, dispatched_at)
    select ${sqlId(events, "n")}, '${project}', n, 'graphObject', 'Package', ${sqlId(objects, "n")}, 1, 'created',
      case when n = 2 then '{name,seldom,size}'::text[] else '{size}' end, '{}', 'user', 'ada', ${sqlId(events, "n")}, 0, now()
    from generate_series(1, ${many}) n`,
  `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
      actor_type, actor_id, root_event_id, depth, dispatched_at)
    select ${sqlId(busyEvents, "n")}, '${project}', ${many} + n, 'graphObject', 'Package', '${busy}', n, 'updated',
      case when n = ${seldom} then '{seldom,size}'::text[] else '{size}' end, '{}', 'user', 'ada', ${sqlId(busyEvents, "n")}, 0, now()
    from generate_series(2, ${many}) n`,
  `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled)
    select ${sqlId(agents, "n")}, '${project}', 'handles ' || n, 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true from generate_series(1, ${handlers}) n`,
  `insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, exclusive, status)
    select gen_random_uuid(), project_id, ${sqlId(agents, `1 + position % ${handlers}`)}, entity_id, 1, 'created', id, false, 'completed'
    from kb.graph_events where version = 1`,
  "analyze"
]

const rowsOf = rowsReadIn(project)
const ada = UserId.make("ada")
const author = { actor: { actorType: "user", actorId: ada }, cause: direct } as const

layer(filledBy(filling), { excludeTestServices: true, timeout: "2 minutes" })((it) => {
  describe("Cost of the graph", () => {
    it.effect(
      "a page of what begins or ends at a hub, as it is and as it was, at its beginning and far on",
      () =>
        Effect.gen(function* () {
          const { list } = yield* Relationships
          const database = yield* Database
          const page = (asOf: Date | undefined, before: number) =>
            list({ objectId: hub, asOf }, idOf(relationships, before), 50)
          for (const asOf of [undefined, new Date()])
            for (const before of [many, 1_000]) {
              expect(yield* rowsOf(() => page(asOf, before))).toBeLessThan(few / 2)
              const found = yield* database.inProject(project, page(asOf, before))
              const first = Math.min(before - 1, around)
              expect(found.map(({ id }) => id)).toEqual(
                Array.from({ length: 50 }, (_, index) => idOf(relationships, first - index))
              )
            }
        })
    )

    it.effect("what relates an object to itself, from before that was refused, is there once", () =>
      Effect.gen(function* () {
        const { list } = yield* Relationships
        const found = yield* (yield* Database).inProject(project, list({ objectId: hub }, undefined, 3))
        expect(found.map(({ id }) => id)).toEqual(
          [many + 1, around, around - 1].map((number) => idOf(relationships, number))
        )
      })
    )

    it.effect("why an object is as it is, however often it was changed", () =>
      Effect.gen(function* () {
        const provenances = yield* Provenances
        const gateway = yield* Gateway
        const database = yield* Database
        const versions = Effect.map(database.inProject(project, provenances.of(busy, undefined)), (found) =>
          found?.properties.map(({ property, version }) => [property, version])
        )
        // Nobody has written it since there is more to find than its events.
        expect(yield* versions).toEqual([
          ["name", 1],
          ["seldom", seldom],
          ["size", many]
        ])
        const write = gateway.apply({ type: "update", objectId: busy, data: { size: 2 } }, author)
        yield* database.inProject(project, write)
        expect(yield* rowsOf(() => provenances.of(busy, undefined))).toBeLessThan(few)
        expect(yield* rowsOf(() => provenances.of(busy, "seldom"))).toBeLessThan(few)
        expect(yield* versions).toEqual([
          ["name", 1],
          ["seldom", seldom],
          ["size", many + 1]
        ])
      })
    )

    it.effect("what goes and comes back with a hub is written in pieces, and all of it", () =>
      Effect.gen(function* () {
        const gateway = yield* Gateway
        const database = yield* Database
        const sql = yield* SqlClient.SqlClient
        /** How many events each statement of a transaction wrote. */
        const pieces = (version: number) =>
          Effect.map(
            database.inProject(
              project,
              Effect.orDie(sql<{ count: number }>`
                select count(*)::int as count from kb.graph_events
                where entity_type = 'relationship' and version = ${version}::int group by xmin::text, cmin::text order by 1`)
            ),
            (rows) => rows.map(({ count }) => count)
          )
        const whole = Array.from({ length: Math.floor(around / 1_000) }, () => 1_000)
        yield* database.inProject(project, gateway.apply({ type: "delete", objectId: hub }, author))
        expect(yield* pieces(2)).toEqual([around + 1 - 1_000 * whole.length, ...whole])
        yield* database.inProject(project, gateway.restoreObject(hub, author))
        expect(yield* pieces(3)).toEqual([around + 1 - 1_000 * whole.length, ...whole])
      })
    )

    it.effect("a purge, whatever agents have handled of others", () =>
      Effect.gen(function* () {
        const gateway = yield* Gateway
        const place = (time: number) => ObjectId.make(idOf(objects, many - 10 * time))
        const purge = (time: number) =>
          gateway.purgeObject({ type: "delete", objectId: place(time) }, author, ada)
        expect(yield* rowsOf(purge)).toBeLessThan(few)
        const sql = yield* SqlClient.SqlClient
        const left = yield* (yield* Database).inProject(
          project,
          Effect.orDie(sql`select count(*)::int as count from kb.agent_processing_log`)
        )
        expect(left).toEqual([{ count: many - times }])
      })
    )
  })
})

/**
 * Proves what a statement of many items answers of each, and that no item waits for another transaction or keeps the others from being written.
 */
import { describe, expect, layer } from "@effect/vitest"
import { direct } from "@tropism/domain/actor"
import { ObjectId, ProjectId, RelationshipId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { ask, holding } from "../../testing/owner-rows.ts"
import { Database, ProjectTransaction } from "../database/database.ts"
import { poolLayer } from "../database/pool.ts"
import type { PostgresAccess } from "../database/postgres-access.ts"
import { Ids } from "../ids.ts"
import { makeObjectWrites, makeRelationshipWrites } from "./creations.ts"
import { makeEntityWrites, type Terms } from "./entity-writes.ts"
import type { Planned } from "./recording.ts"

class Access extends Context.Service<Access, PostgresAccess>()("test/Access") {}

const furnished = Layer.unwrap(
  Effect.map(freshDatabase, (access) =>
    Layer.mergeAll(
      Layer.succeed(Access, access),
      Ids.layer,
      Layer.provideMerge(
        Database.layer,
        poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
      )
    )
  )
)

const actor = { actorType: "user", actorId: "ada" } as const
const terms: Terms = { cause: direct, locked: "skip" }
const nowhere = "01990000-0000-7000-8000-0000000000ff"

/** A project with the statements that write in it, each in a transaction of its own as a batch has one. */
const newScene = Effect.gen(function* () {
  const access = yield* Access
  const database = yield* Database
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const projectId = ProjectId.make(yield* ids.next)
  yield* ask(access, `insert into kb.projects (id, name, created_by) values ('${projectId}', 'x', 'ada')`)
  const run = Effect.fnUntraced(function* <A>(plan: Effect.Effect<Planned<A>, never, ProjectTransaction>) {
    const { outcomes, statement } = yield* Effect.provideService(plan, ProjectTransaction, { projectId })
    const [rows = []] = yield* database.askBatch(projectId, [statement], 1_000)
    return outcomes(rows)
  })
  const objects = yield* makeObjectWrites
  const relationships = yield* makeRelationshipWrites
  const { remove, update } = makeEntityWrites(sql, ids)
  const create = (...keys: ReadonlyArray<string>) =>
    run(
      objects.create(
        keys.map((key) => ({ type: "Thing", key, content: { properties: { key }, untrusted: [] }, actor })),
        terms
      )
    )
  const made = (...keys: ReadonlyArray<string>) =>
    Effect.map(create(...keys), (outcomes) =>
      outcomes.map((outcome) => {
        if (outcome.verdict !== "created") throw new Error(outcome.verdict)
        return outcome.row.id
      })
    )
  const relate = (...pairs: ReadonlyArray<readonly [string | undefined, string | undefined]>) =>
    run(
      relationships.create(
        pairs.map(([fromId, toId]) => ({
          type: "knows",
          fromId: ObjectId.make(fromId ?? nowhere),
          toId: ObjectId.make(toId ?? nowhere),
          content: { properties: {}, untrusted: [] },
          actor
        })),
        terms
      )
    )
  const patch = (
    kind: "object" | "relationship",
    ...patches: ReadonlyArray<readonly [string | undefined, Properties, number?]>
  ) =>
    run(
      update(
        kind,
        patches.map(([id = nowhere, properties, expectedVersion]) => ({
          id: ObjectId.make(id),
          content: { properties, untrusted: [] },
          expectedVersion,
          actor
        })),
        terms
      )
    )
  const drop = (
    kind: "object" | "relationship",
    ...ids: ReadonlyArray<readonly [string | undefined, number?]>
  ) =>
    run(
      remove(
        kind,
        ids.map(([id = nowhere, expectedVersion]) => ({
          id: RelationshipId.make(id),
          expectedVersion,
          actor
        })),
        terms
      )
    )
  /** The events in the order in which they are dispatched. */
  const events = Effect.map(
    ask(
      access,
      `select entity_id, version, type from kb.graph_events where project_id = '${projectId}' order by seq`
    ),
    (rows) => rows.map(([id, version, type]) => [id, version, type].join(" "))
  )
  const hold = (id: string | undefined, table = "graph_objects") =>
    holding(access, `select from kb.${table} where id = '${id}' for update`)
  /** The lines of a statement's plan that tell how rows of the graph were read; it is not committed. */
  const scansOf = Effect.fnUntraced(function* <A>(
    plan: Effect.Effect<Planned<A>, never, ProjectTransaction>
  ) {
    const { statement } = yield* Effect.provideService(plan, ProjectTransaction, { projectId })
    const [text, values] = statement.compile()
    const explained = database.askBatch(projectId, [
      sql.unsafe(`explain (analyze, timing off, costs off, summary off, buffers off) ${text}`, values)
    ])
    const [rows = []] = yield* explained
    const lines = rows.map((row) => String(Object.values(row as object)[0]))
    return lines.flatMap((line, place) =>
      / on (?:graph_|idx)/.test(line) && / Scan /.test(line)
        ? [[line, ...lines.slice(place + 1, place + 5).filter((next) => next.includes("Removed"))].join(" ")]
        : []
    )
  })
  const plans = {
    create: (key: string) =>
      objects.create([{ type: "Thing", key, content: { properties: {}, untrusted: [] }, actor }], terms),
    update: (id: string) =>
      update(
        "object",
        [
          {
            id: ObjectId.make(id),
            content: { properties: { n: 2 }, untrusted: [] },
            expectedVersion: undefined,
            actor
          }
        ],
        terms
      ),
    remove: (id: string) =>
      remove("object", [{ id: ObjectId.make(id), expectedVersion: undefined, actor }], terms),
    relate: (from: string, to: string) =>
      relationships.create(
        [
          {
            type: "knows",
            fromId: ObjectId.make(from),
            toId: ObjectId.make(to),
            content: { properties: {}, untrusted: [] },
            actor
          }
        ],
        terms
      )
  }
  return { access, create, drop, events, hold, made, patch, plans, projectId, relate, scansOf }
})

const verdicts = (outcomes: ReadonlyArray<{ readonly verdict: string }>) =>
  outcomes.map(({ verdict }) => verdict)

layer(furnished)((it) => {
  describe("Many creations in one statement", () => {
    it.effect("write what is new, in their order, and name who has a key", () =>
      Effect.gen(function* () {
        const { create, events, made } = yield* newScene
        const [holder] = yield* made("taken")
        const outcomes = yield* create("a", "taken", "b", "c")
        expect(verdicts(outcomes)).toEqual(["created", "taken", "created", "created"])
        expect(outcomes[1]).toEqual({ verdict: "taken", holderId: holder })
        expect(outcomes[0]).toMatchObject({
          row: { key: "a", version: 1, properties: { key: "a" }, actorId: "ada" }
        })
        const created = outcomes.flatMap((outcome) =>
          outcome.verdict === "created" ? [`${outcome.row.id} 1 created`] : []
        )
        expect(yield* events).toEqual([`${holder} 1 created`, ...created])
      })
    )

    it.effect("relate what is there, and say which end is not", () =>
      Effect.gen(function* () {
        const { made, relate } = yield* newScene
        const [a, b, c] = yield* made("a", "b", "c")
        yield* relate([a, b])
        const outcomes = yield* relate([a, b], [b, c], [undefined, a], [a, undefined])
        expect(verdicts(outcomes)).toEqual(["taken", "created", "noEnd", "noEnd"])
        expect(outcomes.slice(2)).toMatchObject([{ end: "fromId" }, { end: "toId" }])
      })
    )

    it.effect("leave a relationship undecided whose end another transaction is deleting", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { hold, made, relate } = yield* newScene
          const [a, b, c] = yield* made("a", "b", "c")
          yield* hold(b)
          expect(verdicts(yield* relate([a, b], [a, c]))).toEqual(["undecided", "created"])
        })
      )
    )
  })

  describe("Many updates in one statement", () => {
    it.effect("are judged each by its own row", () =>
      Effect.gen(function* () {
        const { events, made, patch } = yield* newScene
        const [a, b, c, d] = yield* made("a", "b", "c", "d")
        const outcomes = yield* patch(
          "object",
          [d, { n: 4 }, 1],
          [a, { n: 1 }],
          [b, { key: "b" }],
          [c, { n: 3 }, 7],
          [undefined, { n: 5 }]
        )
        expect(verdicts(outcomes)).toEqual(["updated", "updated", "unchanged", "version", "missing"])
        expect(outcomes).toMatchObject([
          { row: { id: d, version: 2, properties: { key: "d", n: 4 } } },
          { row: { id: a, version: 2, properties: { key: "a", n: 1 } } },
          { row: { id: b, version: 1 } },
          { row: { id: c, version: 1 } },
          {}
        ])
        expect((yield* events).slice(4)).toEqual([`${d} 2 updated`, `${a} 2 updated`])
      })
    )

    it.effect("leave to inspection what may be too large, and write nothing of it", () =>
      Effect.gen(function* () {
        const { made, patch } = yield* newScene
        const [a, b] = yield* made("a", "b")
        const large = { text: "x".repeat(10_000) }
        expect(verdicts(yield* patch("object", [a, large], [b, { n: 1 }]))).toEqual(["inspect", "updated"])
        expect(yield* patch("object", [a, {}])).toMatchObject([
          { verdict: "unchanged", row: { version: 1, properties: { key: "a" } } }
        ])
      })
    )

    it.effect("leave undecided what another transaction holds, and wait for nothing", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { hold, made, patch } = yield* newScene
          const [a, b] = yield* made("a", "b")
          yield* hold(a)
          expect(verdicts(yield* patch("object", [a, { n: 1 }], [b, { n: 1 }]))).toEqual([
            "undecided",
            "updated"
          ])
        })
      )
    )
  })

  describe("Many deletions in one statement", () => {
    it.effect("spare an object with relationships, and another version", () =>
      Effect.gen(function* () {
        const { drop, events, made, relate } = yield* newScene
        const [a, b, c, d] = yield* made("a", "b", "c", "d")
        yield* relate([a, b])
        const before = yield* events
        const outcomes = yield* drop("object", [a], [b], [c, 1], [d, 2], [undefined])
        expect(verdicts(outcomes)).toEqual(["related", "related", "deleted", "version", "missing"])
        expect(outcomes[3]).toMatchObject({ version: 1 })
        expect((yield* events).slice(before.length)).toEqual([`${c} 2 deleted`])
        expect(verdicts(yield* drop("object", [c]))).toEqual(["missing"])
      })
    )

    it.effect("delete relationships, and leave undecided what another transaction holds", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { drop, hold, made, relate } = yield* newScene
          const [a, b, c] = yield* made("a", "b", "c")
          const related = yield* relate([a, b], [b, c])
          const [first, second] = related.map((outcome) =>
            outcome.verdict === "created" ? outcome.row.id : undefined
          )
          yield* hold(first, "graph_relationships")
          expect(verdicts(yield* drop("relationship", [first], [second]))).toEqual(["undecided", "deleted"])
        })
      )
    )
  })

  describe("A statement whose plan is from a time when the tables were small", () => {
    it.effect("reads the rows of its items and no others of the project", () =>
      Effect.gen(function* () {
        const { access, made, plans, projectId, scansOf } = yield* newScene
        const [a, b] = yield* made("a", "b")
        yield* ask(access, "analyze kb.graph_objects, kb.graph_relationships")
        yield* ask(
          access,
          `insert into kb.graph_objects (id, project_id, type, key, properties, version)
           select gen_random_uuid(), '${projectId}', 'Thing', 'k' || n, '{}', 1 from generate_series(1, 3000) n`
        )
        const scans = yield* Effect.forEach(
          [
            plans.create("k7"),
            plans.update(a ?? nowhere),
            plans.update(nowhere),
            plans.remove(a ?? nowhere),
            plans.remove(nowhere),
            plans.relate(a ?? nowhere, b ?? nowhere),
            plans.relate(a ?? nowhere, nowhere)
          ],
          (plan) => scansOf(plan as Effect.Effect<Planned<unknown>, never, ProjectTransaction>)
        )
        expect(scans.map((of) => of.length > 0)).toEqual(scans.map(() => true))
        for (const scan of scans.flat()) {
          expect(scan).not.toContain("Seq Scan")
          expect(scan).not.toMatch(/Removed by \w+( \w+)?: \d\d/)
          expect([scan, Number(/rows=([\d.]+)/.exec(scan)?.[1] ?? 0) < 5]).toEqual([scan, true])
        }
      })
    )
  })
})

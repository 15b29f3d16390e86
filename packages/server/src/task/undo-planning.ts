/**
 * Plans an undo: an item for each entity that a cause touched.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * How an entity goes back is judged by `domain/inverse.ts` on its own facts. Here
 * the rest of the graph is asked: who stands at what would be deleted, and who
 * has taken the place of what would come back. Nothing is locked; an approval
 * finds again every version that was planned, or does nothing.
 */
import { type Draft, draftInverse, inConflict } from "@tropism/domain/inverse"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type Known, makeUndoFacts, type Touched } from "./undo-facts.ts"
import { undoLimits } from "./task-limits.ts"

/** One item of a plan. */
export interface Planned {
  readonly known: Known
  readonly draft: Draft
}

export const makeUndoPlanning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { factsOf } = yield* makeUndoFacts

  /** Objects that are not deleted, because something that stays is related to them. */
  const relatedTo = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const objects = idsOf(plan, "graphObject", "delete")
    const falling = idsOf(plan, "relationship", "delete")
    if (objects.length === 0) return new Map<string, string>()
    const at = (end: "from_id" | "to_id") => sql`(
      select one.type, one.id from kb.graph_relationships one where one.${sql.literal(end)} = object.id and one.deleted_at is null
        and not one.id = any(${falling}::uuid[]) limit 1)`
    const rows = yield* sql<{ readonly id: string; readonly type: string }>`
      select distinct on (object.id) object.id, one.type from unnest(${objects}::uuid[]) object(id)
      cross join lateral (${at("from_id")} union all ${at("to_id")}) one`
    return new Map(
      rows.map(({ id, type }) => [id, `A relationship of type ${type} that stays is at it, so it stays.`])
    )
  })

  /** Objects that do not come back, because another has their key: one that stays, or one that was deleted later. */
  const displaced = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const objects = idsOf(plan, "graphObject", "restore")
    if (objects.length === 0) return new Map<string, string>()
    const rows = yield* sql<{ readonly id: string; readonly type: string }>`
      select gone.id, gone.type from kb.graph_objects gone where gone.id = any(${objects}::uuid[]) and (exists (
        select 1 from kb.graph_objects taken where taken.project_id = gone.project_id and taken.type = gone.type and taken.key = gone.key
          and taken.deleted_at is null and not taken.id = any(${idsOf(plan, "graphObject", "delete")}::uuid[])
      ) or exists (
        select 1 from kb.graph_objects twin where twin.id = any(${objects}::uuid[]) and twin.type = gone.type and twin.key = gone.key
          and (twin.updated_at, twin.id) > (gone.updated_at, gone.id)
      ))`
    return new Map(rows.map(({ id, type }) => [id, `Another ${type} has its key, so it stays deleted.`]))
  })

  /** Relationships that do not come back, because an end is gone or another has their place. */
  const unplaced = Effect.fnUntraced(function* (plan: ReadonlyArray<Planned>) {
    const relationships = idsOf(plan, "relationship", "restore")
    if (relationships.length === 0) return new Map<string, string>()
    const going = idsOf(plan, "graphObject", "delete")
    const coming = idsOf(plan, "graphObject", "restore")
    const isThere = (end: string) =>
      sql`(${sql.literal(end)}.deleted_at is null and not ${sql.literal(end)}.id = any(${going}::uuid[]) or ${sql.literal(end)}.id = any(${coming}::uuid[]))`
    const rows = yield* sql<{ readonly id: string; readonly hasEnds: boolean }>`
      select gone.id, ${isThere("start")} and ${isThere("finish")} as has_ends from kb.graph_relationships gone
      join kb.graph_objects start on start.id = gone.from_id join kb.graph_objects finish on finish.id = gone.to_id
      where gone.id = any(${relationships}::uuid[]) and (not (${isThere("start")} and ${isThere("finish")}) or exists (
        select 1 from kb.graph_relationships taken where taken.project_id = gone.project_id and taken.type = gone.type
          and taken.from_id = gone.from_id and taken.to_id = gone.to_id and taken.deleted_at is null
          and not taken.id = any(${idsOf(plan, "relationship", "delete")}::uuid[])
      ) or exists (
        select 1 from kb.graph_relationships twin where twin.id = any(${relationships}::uuid[]) and twin.type = gone.type
          and twin.from_id = gone.from_id and twin.to_id = gone.to_id and (twin.updated_at, twin.id) > (gone.updated_at, gone.id)
      ))`
    return new Map(
      rows.map(({ hasEnds, id }) => [
        id,
        hasEnds
          ? "Another relationship like it is there, so it stays deleted."
          : "An object at one of its ends is deleted and stays so."
      ])
    )
  })

  /** The items, what is ready first. */
  const plan = Effect.fnUntraced(function* (touched: ReadonlyArray<Touched>) {
    const drafts: Array<Planned> = []
    for (let from = 0; from < touched.length; from += undoLimits.factsEntities) {
      const page = touched.slice(from, from + undoLimits.factsEntities)
      const known = [
        ...(yield* factsOf("object", page.filter(isObject))),
        ...(yield* factsOf(
          "relationship",
          page.filter((one) => !isObject(one))
        ))
      ]
      drafts.push(...known.map((facts) => ({ known: facts, draft: draftInverse(facts) })))
    }
    // Each question is about what the answers before it left ready.
    let planned: ReadonlyArray<Planned> = drafts
    for (const ask of [relatedTo, displaced, unplaced]) planned = kept(planned, yield* ask(planned))
    return planned.toSorted((a, b) => rankOf(a) - rankOf(b))
  })

  return { plan }
})

const isObject = ({ entityType }: Touched): boolean => entityType === "graphObject"

/** The entities of one kind with which one thing is to be done. */
const idsOf = (
  plan: ReadonlyArray<Planned>,
  entityType: Touched["entityType"],
  action: Draft["action"]
): ReadonlyArray<string> =>
  plan.flatMap(({ draft, known }) =>
    known.entityType === entityType && draft.action === action && draft.status === "ready"
      ? [known.touched.id]
      : []
  )

const kept = (plan: ReadonlyArray<Planned>, reasons: ReadonlyMap<string, string>): ReadonlyArray<Planned> =>
  plan.map(({ draft, known }) => {
    const reason = reasons.get(known.touched.id)
    return { known, draft: reason === undefined ? draft : inConflict(draft, reason) }
  })

const ranks = { ready: 0, conflict: 2, unneeded: 4 } as const

const rankOf = ({ draft, known }: Planned): number =>
  ranks[draft.status] + (known.entityType === "graphObject" ? 0 : 1)

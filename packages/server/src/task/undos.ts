/**
 * Undos: the plans by which a person takes back what a run, an agent's version or a chain did.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * For one cause one plan waits at a time: whoever asks again gets the open one, as the graph is now.
 * A plan changes nothing in the graph; `undoing.ts` does, when it is approved.
 */
import type { TaskId, UserId } from "@tropism/domain/ids"
import { isUndo, type UndoTask } from "@tropism/domain/task"
import { causeKey, undoBounds, type UndoCause, type UndoItem, type UndoPayload } from "@tropism/domain/undo"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { makeTaskReading } from "./reading.ts"
import { makeUndoCauses } from "./undo-cause.ts"
import { makeUndoFacts } from "./undo-facts.ts"
import { makeUndoItems, planDigest } from "./undo-items.ts"
import { makeUndoPlanning, type Planned } from "./undo-planning.ts"
import { UndoRefused } from "./undo-refused.ts"

type Planning<A> = Effect.Effect<A, UndoRefused, ProjectTransaction>

export class Undos extends Context.Service<
  Undos,
  {
    /** Plans the undo of a cause, or answers the plan that waits already, as the graph is now; undefined when there is no such cause. */
    readonly plan: (
      cause: UndoCause,
      by: UserId
    ) => Planning<{ readonly task: UndoTask; readonly isNew: boolean } | undefined>
    /** Plans a waiting undo anew, as the graph is now; undefined when there is no such task. */
    readonly replan: (id: TaskId, by: UserId) => Planning<UndoTask | undefined>
    /** Items of an undo behind a place; undefined when there is no such undo. */
    readonly items: (
      id: TaskId,
      after: number | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<UndoItem> | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/task/Undos") {
  static readonly layer = Layer.effect(
    Undos,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const { get, holdNumbers, nextNumber } = yield* makeTaskReading
      const { find, atWork, countSuggestions } = yield* makeUndoCauses
      const { touchedBy, namesOf } = yield* makeUndoFacts
      const planning = yield* makeUndoPlanning
      const kept = yield* makeUndoItems

      /** What undoing a cause would be now. */
      const draw = Effect.fnUntraced(function* (cause: UndoCause, requestedBy: UserId) {
        const { count, runId } = yield* atWork(cause)
        if (count > 0)
          return yield* refuse(
            `${count === 1 ? "A run" : `${count} runs`} of it may still write: stop it first with POST /runs/${runId}/cancel, or all with a kill switch`
          )
        const { total, touched } = yield* touchedBy(cause)
        if (total === 0) return yield* refuse("It has changed nothing in the graph: there is nothing to undo")
        if (total > undoBounds.maxEntities)
          return yield* refuse(
            `It has changed ${total} objects and relationships, and at most ${undoBounds.maxEntities} are undone at once: undo its runs one by one`
          )
        const plan = yield* planning.plan(touched)
        const payload: UndoPayload = {
          cause,
          requestedBy,
          counts: { ...countsOf(plan), suggestions: yield* countSuggestions(cause) },
          agents: yield* namesOf(touched)
        }
        return { plan, payload, digest: yield* planDigest(cause, plan) }
      })

      const openOf = Effect.fnUntraced(function* (cause: UndoCause) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly id: TaskId }>`
          select id from kb.tasks where project_id = ${projectId} and subject = ${causeKey(cause)} and type = 'undo' and status = 'pending'`
        return row && (yield* undo(row.id))
      })

      const undo = Effect.fnUntraced(function* (id: TaskId) {
        const task = yield* get(id, nobody)
        return task && isUndo(task) ? task : undefined
      })

      const plan = Effect.fn("Undos.plan")(function* (cause: UndoCause, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const found = yield* find(cause)
        if (!found) return undefined
        const waiting = yield* openOf(cause)
        if (waiting) return { task: yield* upToDate(waiting, by), isNew: false }
        const { digest, payload, plan: items } = yield* draw(cause, by)
        if (payload.counts.ready + payload.counts.conflicts === 0) return yield* refuse(nothingLeft(items))
        // Whoever plans the same waits here, and then finds this plan; the number is taken only by who plans.
        yield* holdNumbers
        const other = yield* openOf(cause)
        if (other) return { task: other, isNew: false }
        const id = (yield* ids.next) as TaskId
        yield* sql`
          insert into kb.tasks (id, project_id, number, type, title, payload, digest, subject, evidence, root_event_id, depth)
          values (${id}, ${projectId}, ${yield* nextNumber}, 'undo', ${found.title}, ${JSON.stringify(payload)}::text::jsonb, ${digest},
            ${causeKey(cause)}, '[]', ${found.rootEventId}, 0)`
        yield* kept.keep(id, 1, items)
        const task = yield* undo(id)
        return task && { task, isNew: true }
      }, orDie)

      /** The plan that waits, made anew where the graph has moved: nobody is shown one that cannot be approved. */
      const upToDate = Effect.fnUntraced(function* (waiting: UndoTask, by: UserId) {
        const { cause, requestedBy } = waiting.payload
        const { digest } = yield* draw(cause, requestedBy)
        return digest === waiting.digest ? waiting : ((yield* replan(waiting.id, by)) ?? waiting)
      })

      const replan = Effect.fn("Undos.replan")(function* (id: TaskId, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly revision: number; readonly payload: UndoPayload }>`
          update kb.tasks set revision = revision + 1
          where id = ${id} and project_id = ${projectId} and type = 'undo' and status = 'pending' returning revision, payload`
        if (!row) {
          const task = yield* get(id, by)
          if (!task) return undefined
          return yield* new UndoRefused(
            isUndo(task)
              ? { reason: "alreadyDecided", detail: `Task ${task.number} is ${task.status} already` }
              : { reason: "state", detail: `Task ${task.number} is no undo: only those are planned anew` }
          )
        }
        const drawn = yield* draw(row.payload.cause, row.payload.requestedBy)
        yield* sql`
          update kb.tasks set payload = ${JSON.stringify(drawn.payload)}::text::jsonb, digest = ${drawn.digest} where id = ${id}`
        yield* kept.keep(id, row.revision, drawn.plan)
        return yield* undo(id)
      }, orDie)

      const items = Effect.fn("Undos.items")(function* (
        id: TaskId,
        after: number | undefined,
        limit: number
      ) {
        return (yield* undo(id)) && (yield* kept.read(id, { after: after ?? 0, limit }))
      }, orDie)

      return Undos.of({ plan, replan, items })
    })
  )
}

/** An undo is the project's and has no owner: whoever may read the project reads it. */
const nobody = "" as UserId

const refuse = (detail: string) => new UndoRefused({ reason: "state", detail })

const nothingLeft = (plan: ReadonlyArray<Planned>): string =>
  plan.some(({ known }) => known.isPurged || known.isDeleted)
    ? "Nothing of it is left to undo: what it changed is as it was before, or has been deleted or purged since"
    : "Nothing of it is left to undo: everything is as it was before"

const countsOf = (plan: ReadonlyArray<Planned>) => {
  const count = (status: string) => plan.filter(({ draft }) => draft.status === status).length
  const kept = plan
    .flatMap(({ draft }) => draft.properties)
    .filter((property) => property.status === "conflict").length
  return { ready: count("ready"), conflicts: count("conflict"), unneeded: count("unneeded"), kept }
}

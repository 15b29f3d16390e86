/**
 * Reads what a run had to do with the graph: what it read, what it wrote, and what it suggests.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * All of it stands in its trigger, in the records of its calls and in the events that name it; nothing is kept twice.
 * What it read is asked of where a suggestion has its evidence from, so the two agree.
 */
import type { ObjectId, RunId } from "@tropism/domain/ids"
import type { Trigger } from "@tropism/domain/run"
import { type RunObjects, runObjectBounds } from "@tropism/domain/run-objects"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { makeUndoCauses } from "../task/undo-cause.ts"
import { makeSuggestedTasks } from "../task/suggested-tasks.ts"
import { ToolCalls } from "../tool/tool-calls.ts"

export class RunObjectReading extends Context.Service<
  RunObjectReading,
  {
    /** The newest of each kind first, bounded. */
    readonly of: (runId: RunId) => Effect.Effect<RunObjects, never, ProjectTransaction>
  }
>()("@tropism/server/run/RunObjectReading") {
  static readonly layer = Layer.effect(
    RunObjectReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const toolCalls = yield* ToolCalls
      const suggested = yield* makeSuggestedTasks
      const { hasChanged } = yield* makeUndoCauses

      /** The objects whose events woke a run, the newest last. */
      const wokenBy = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [run] = yield* sql<{ readonly trigger: Trigger }>`
          select trigger from kb.agent_runs where id = ${runId} and project_id = ${projectId}`
        return (run?.trigger.events ?? []).flatMap(({ entityType, objectId, objectType, version }) =>
          entityType === "relationship" ? [] : [{ objectId: objectId as ObjectId, type: objectType, version }]
        )
      })

      const read = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const evidence = yield* toolCalls.evidence(runId, yield* wokenBy(runId))
        return yield* sql<Omit<RunObjects["read"][number], "isOwn">>`
          select read."objectId" as object_id, read.type, object.key, read.version
          from rows from (jsonb_to_recordset(${JSON.stringify(evidence)}::text::jsonb) as ("objectId" uuid, type text, version int))
            with ordinality as read("objectId", type, version, place)
          left join kb.graph_objects object on object.id = read."objectId" and object.project_id = ${projectId}
          order by read.place`
      })

      const wrote = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<RunObjects["wrote"][number]>`
          select id as event_id, entity_type, entity_id, object_type, snapshot ->> 'key' as key, version, type as change
          from kb.graph_events where project_id = ${projectId} and run_id = ${runId}
          order by seq desc limit ${runObjectBounds.maxRows}`
      })

      const of = Effect.fn("RunObjectReading.of")(function* (runId: RunId) {
        const written = yield* wrote(runId)
        const own = new Set(written.map(({ entityId, version }) => `${entityId} ${version}`))
        return {
          read: (yield* read(runId)).map((one) => ({
            ...one,
            isOwn: own.has(`${one.objectId} ${one.version}`)
          })),
          wrote: written,
          suggested: yield* suggested(runId),
          changedGraph: written.length > 0 || (yield* hasChanged({ type: "run", runId }))
        }
      }, orDie)
      return RunObjectReading.of({ of })
    })
  )
}

/**
 * The log that lets an agent handle an object's version once.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A unique key decides duplicates and another decides `skip`; the program never
 * looks first and writes then. What a run's end does to its entry stands with
 * the verbs of `Runs`, in the same transaction.
 */
import type { AgentId, EntryId, GraphEventId, ObjectId, RunId } from "@tropism/domain/ids"
import type { ChangeType } from "@tropism/domain/graph"
import type { EntryStatus, ProcessingEntry } from "@tropism/domain/processing"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { type EntryRow, toEntry } from "./rows.ts"

/** An entry that the dispatcher wants to open, with the run that will work on it. */
export interface NewEntry {
  readonly id: EntryId
  readonly agentId: AgentId
  readonly graphObjectId: ObjectId
  readonly objectVersion: number
  readonly eventType: ChangeType
  readonly eventId: GraphEventId
  readonly runId: RunId
  /** Strategy skip: no second live entry of the same agent and object. */
  readonly exclusive: boolean
  /** 1 for the first try. */
  readonly attempt: number
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class ProcessingLog extends Context.Service<
  ProcessingLog,
  {
    /** Opens the entries that may be opened, in order, and answers their ids; the caller queues their runs in the same transaction. */
    readonly open: (entries: ReadonlyArray<NewEntry>) => Read<ReadonlySet<EntryId>>
    /** Notes events that came while the agent was at work on the same object (S001-R24). */
    readonly skip: (entries: ReadonlyArray<NewEntry>) => Read<void>
    /** Takes back entries that this transaction opened. */
    readonly withdraw: (ids: ReadonlyArray<EntryId>) => Read<void>
    readonly list: (
      agentId: AgentId,
      status: EntryStatus | undefined,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    readonly get: (id: EntryId) => Read<ProcessingEntry | undefined>
    readonly find: (agentId: AgentId, eventId: GraphEventId) => Read<ProcessingEntry | undefined>
    /** Abandons entries that are in processing for too long although their run has ended. */
    readonly abandonOrphans: Read<number>
    /** Removes one batch of ended entries of any project that are old, and answers how many. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/run/ProcessingLog") {
  static readonly layer = Layer.effect(
    ProcessingLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const columns = sql`id uuid, "agentId" uuid, "graphObjectId" uuid, "objectVersion" int, "eventType" text, "eventId" uuid, "runId" uuid, exclusive boolean, attempt int`

      const open = Effect.fn("ProcessingLog.open")(function* (entries: ReadonlyArray<NewEntry>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ id: EntryId }>`
          insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, run_id, exclusive, attempt)
          select row.id, ${projectId}::uuid, row."agentId", row."graphObjectId", row."objectVersion", row."eventType", row."eventId", row."runId", row.exclusive, row.attempt
          from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as row(${columns})
          on conflict do nothing returning id`
        return new Set(rows.map((row) => row.id))
      }, orDie)

      const skip = Effect.fn("ProcessingLog.skip")(function* (entries: ReadonlyArray<NewEntry>) {
        const { projectId } = yield* ProjectTransaction
        const reason = "The agent was at work on this object when the event came"
        yield* sql`
          insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, exclusive, status, reason)
          select row.id, ${projectId}::uuid, row."agentId", row."graphObjectId", row."objectVersion", row."eventType", row."eventId", false, 'skipped', ${reason}
          from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as row(${columns})
          on conflict do nothing`
      }, orDie)

      const withdraw = Effect.fn("ProcessingLog.withdraw")(function* (ids: ReadonlyArray<EntryId>) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`delete from kb.agent_processing_log where project_id = ${projectId} and id = any(${ids}::uuid[])`
      }, orDie)

      const list = Effect.fn("ProcessingLog.list")(function* (
        agentId: AgentId,
        status: EntryStatus | undefined,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EntryRow>`
            select * from kb.agent_processing_log where ${sql.and([
              sql`project_id = ${projectId} and agent_id = ${agentId}`,
              ...(status === undefined ? [] : [sql`status = ${status}`]),
              ...(before === undefined ? [] : [sql`id < ${before}`])
            ])} order by id desc limit ${limit}`
        return rows.map(toEntry)
      }, orDie)

      const get = Effect.fn("ProcessingLog.get")(function* (id: EntryId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<EntryRow>`
          select * from kb.agent_processing_log where project_id = ${projectId} and id = ${id}`
        return row && toEntry(row)
      }, orDie)

      const find = Effect.fn("ProcessingLog.find")(function* (agentId: AgentId, eventId: GraphEventId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<EntryRow>`
          select * from kb.agent_processing_log where project_id = ${projectId} and agent_id = ${agentId} and event_id = ${eventId}
          order by attempt desc limit 1`
        return row && toEntry(row)
      }, orDie)

      const abandonOrphans = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.agent_processing_log entry
          set status = 'abandoned', completed_at = now(), error_message = 'No worker was alive for this entry for too long'
          where project_id = ${projectId} and status = 'processing'
            and started_at < now() - make_interval(secs => ${runLimits.stuckAfterMs / 1_000}::float8)
            and not exists (
              select 1 from kb.agent_runs run where run.id = entry.run_id and run.status in ('queued', 'running', 'paused'))
          returning id`
        return rows.length
      }).pipe(orDie)

      const forget = sql<{ count: number }>`
        select kb.forget_entries(${runLimits.entryKeepMs / 1_000}::float8, ${runLimits.deadLetterKeepMs / 1_000}::float8,
          ${runLimits.forgetBatchEntries}::int) as count`.pipe(
        Effect.map(([row]) => row?.count ?? 0),
        orDie
      )

      return ProcessingLog.of({ open, skip, withdraw, list, get, find, abandonOrphans, forget })
    })
  )
}

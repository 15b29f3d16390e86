/**
 * The log that lets an agent handle an object's version once.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A unique key decides duplicates and another decides `skip`; the program never
 * looks first and writes then. What a run's end does to its entry stands with
 * the verbs of `Runs`, in the same transaction.
 */
import type { AgentId, EntryId, GraphEventId, RunId, UserId } from "@tropism/domain/ids"
import type { EntryStatus, HandledChange, HandledType, ProcessingEntry } from "@tropism/domain/processing"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { makeAttempts, type Attempts } from "./attempts.ts"
import { type EntryRow, entryTold, toEntry } from "./rows.ts"
import { noWorkerSentence } from "./sentences.ts"
import { makeSettling } from "./settling.ts"

/** An entry to be opened: with its run, or to wait until the releaser gives it one. */
export interface NewEntry {
  readonly id: EntryId
  readonly agentId: AgentId
  readonly entityType: HandledType
  readonly graphObjectId: string
  readonly objectVersion: number
  readonly eventType: HandledChange
  readonly eventId: GraphEventId
  /** 1 for the first try. */
  readonly attempt: number
  /** The run that works on it; null for an entry that waits. */
  readonly runId: RunId | null
  /** No second live entry of the same agent and object. */
  readonly exclusive: boolean
  /** The instant before which it waits; null for none. */
  readonly dueAt: string | null
  /** Why it waits; null when it has a run. */
  readonly reason: string | null
  /** It stands in line behind earlier entries of the same object. */
  readonly standsInLine: boolean
  /** It is not opened when the agent is at work on the object, unless that run waits for its provider or another event of the object waits already. */
  readonly skips: boolean
  /** The person who asked for it; absent where nobody did. */
  readonly askedBy?: UserId
}

/** For how many days an ended entry is kept, however it ended, and what a foreign server told is known (S001-K02). */
export class RetentionDays extends Context.Reference<number>("@tropism/server/run/RetentionDays", {
  defaultValue: () => 30
}) {}

/** A processing entry that nobody works on for this long is abandoned, and a run at work of which nothing comes for as long (S000-R19). */
export class StuckAfterMs extends Context.Reference<number>("@tropism/server/run/StuckAfterMs", {
  defaultValue: () => runLimits.stuckAfterMs
}) {}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class ProcessingLog extends Context.Service<
  ProcessingLog,
  {
    /** Opens the entries that may be opened and answers their ids; the caller queues the runs that they name in the same transaction. */
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
    /** What was tried at the events of entries and may come next, by the ids of the entries. */
    readonly attemptsOf: (ids: ReadonlyArray<EntryId>) => Read<ReadonlyMap<EntryId, Attempts>>
    /** The dead letters of an agent, newest first. */
    readonly listDead: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    /** Holds dead letters of an agent for this transaction, the oldest or those named. */
    readonly takeDead: (
      agentId: AgentId,
      ids: ReadonlyArray<EntryId> | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    /** Takes the mark of a dead letter from entries that are tried again, and from earlier attempts at the same. */
    readonly revive: (ids: ReadonlyArray<EntryId>) => Read<void>
    /** Abandons entries that are in processing for too long although their run has ended. */
    readonly abandonOrphans: Read<number>
    /** Removes one batch of ended entries of any project that are old, and of occurrences that no entry is about; answers how many. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/run/ProcessingLog") {
  static readonly layer = Layer.effect(
    ProcessingLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const stuckAfterMs = yield* StuckAfterMs
      const { settle } = yield* makeSettling
      const { attemptsOf, revive } = yield* makeAttempts

      const columns = sql`id uuid, "agentId" uuid, "entityType" text, "graphObjectId" uuid, "objectVersion" int, "eventType" text,
        "eventId" uuid, attempt int, "runId" uuid, exclusive boolean, "dueAt" timestamptz, reason text, "standsInLine" boolean, skips boolean, "askedBy" text`

      const told = entryTold(sql, sql`agent_processing_log`)

      const open = Effect.fn("ProcessingLog.open")(function* (entries: ReadonlyArray<NewEntry>) {
        if (entries.length === 0) return new Set<EntryId>()
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ id: EntryId }>`
          insert into kb.agent_processing_log (id, project_id, agent_id, entity_type, graph_object_id, object_version, event_type, event_id, occurrence_id,
            attempt, run_id, exclusive, due_at, reason, asked_by, parked)
          select row.id, ${projectId}::uuid, row."agentId", row."entityType", row."graphObjectId", row."objectVersion", row."eventType", ${subjectOf(sql)},
            row.attempt, row."runId", row.exclusive, row."dueAt", row.reason, row."askedBy",
            row."standsInLine" and (
              row_number() over (partition by row."agentId", row."graphObjectId" order by row."objectVersion") > 1
              or exists (
                select 1 from kb.agent_processing_log earlier
                where earlier.agent_id = row."agentId" and earlier.graph_object_id = row."graphObjectId"
                  and earlier.status = 'pending' and earlier.run_id is null))
          from (
            select *, bool_or(not skips) over (partition by "agentId", "graphObjectId" order by "objectVersion"
              rows between unbounded preceding and 1 preceding) as follows
            from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as given(${columns})
          ) row
          where not row.skips or row.follows or not exists (
            select 1 from kb.agent_processing_log live left join kb.agent_runs run on run.id = live.run_id
            where live.agent_id = row."agentId" and live.graph_object_id = row."graphObjectId"
              and live.exclusive and live.status in ('pending', 'processing') and live.run_id is not null and run.waits_for is null)
            or exists (
              select 1 from kb.agent_processing_log kept
              where kept.agent_id = row."agentId" and kept.graph_object_id = row."graphObjectId"
                and kept.status = 'pending' and kept.run_id is null)
          on conflict do nothing returning id`
        return new Set(rows.map((row) => row.id))
      }, orDie)

      const skip = Effect.fn("ProcessingLog.skip")(function* (entries: ReadonlyArray<NewEntry>) {
        if (entries.length === 0) return
        const { projectId } = yield* ProjectTransaction
        const reason = "The agent was at work on this object when the event came"
        yield* sql`
          insert into kb.agent_processing_log (id, project_id, agent_id, entity_type, graph_object_id, object_version, event_type, event_id, occurrence_id,
            exclusive, status, reason)
          select row.id, ${projectId}::uuid, row."agentId", row."entityType", row."graphObjectId", row."objectVersion", row."eventType",
            ${subjectOf(sql)}, false, 'skipped', ${reason}
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
            select ${told} from kb.agent_processing_log where ${sql.and([
              sql`project_id = ${projectId} and agent_id = ${agentId}`,
              ...(status === undefined ? [] : [sql`status = ${status}`]),
              ...(before === undefined ? [] : [sql`id < ${before}`])
            ])} order by id desc limit ${limit}`
        return rows.map(toEntry)
      }, orDie)

      const listDead = Effect.fn("ProcessingLog.listDead")(function* (
        agentId: AgentId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EntryRow>`
          select ${told} from kb.agent_processing_log
          where project_id = ${projectId} and agent_id = ${agentId} and dead_lettered_at is not null
            and id < ${before ?? lastId} order by id desc limit ${limit}`
        return rows.map(toEntry)
      }, orDie)

      const takeDead = Effect.fn("ProcessingLog.takeDead")(function* (
        agentId: AgentId,
        ids: ReadonlyArray<EntryId> | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EntryRow>`
          select ${told} from kb.agent_processing_log where ${sql.and([
            sql`project_id = ${projectId} and agent_id = ${agentId} and dead_lettered_at is not null`,
            ...(ids === undefined ? [] : [sql`id = any(${ids}::uuid[])`])
          ])} order by id limit ${limit} for no key update`
        return rows.map(toEntry)
      }, orDie)

      const get = Effect.fn("ProcessingLog.get")(function* (id: EntryId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<EntryRow>`
          select ${told} from kb.agent_processing_log where project_id = ${projectId} and id = ${id}`
        return row && toEntry(row)
      }, orDie)

      const abandonOrphans = settle(
        sql`entry.status = 'processing'
          and entry.started_at < now() - make_interval(secs => ${stuckAfterMs / 1_000}::float8)
          and not exists (
            select 1 from kb.agent_runs run where run.id = entry.run_id and run.status in ('queued', 'running', 'paused'))`,
        { status: "abandoned", message: noWorkerSentence, failure: "noWorker" }
      ).pipe(orDie)

      const keepSeconds = (yield* RetentionDays) * secondsPerDay
      const forget = sql<{ count: number }>`
        select kb.forget_entries(${keepSeconds}::float8, ${keepSeconds}::float8, ${runLimits.forgetBatchEntries}::int)
          + kb.forget_occurrences(${keepSeconds}::float8, ${runLimits.forgetBatchEntries}::int) as count`.pipe(
        Effect.map(([row]) => row?.count ?? 0),
        orDie
      )

      return ProcessingLog.of({
        open,
        skip,
        withdraw,
        list,
        get,
        attemptsOf: Effect.fn("ProcessingLog.attemptsOf")(attemptsOf, orDie),
        abandonOrphans,
        forget,
        listDead,
        takeDead,
        revive: Effect.fn("ProcessingLog.revive")(revive, orDie)
      })
    })
  )
}

const secondsPerDay = 86_400

/** An entry is about a graph event or about an occurrence. */
const subjectOf = (sql: SqlClient.SqlClient) =>
  sql`case when row."entityType" <> 'mcpEvent' then row."eventId" end, case when row."entityType" = 'mcpEvent' then row."eventId" end`

/**
 * Records each object version that an agent handles, so that it is handled once.
 *
 * Unique keys decide duplicates and `skip`; the program never reads first and writes then. The end of a run updates its entry in the same
 * transaction, with the verbs of `Runs`.
 */
import type { AgentId, EntryId, GraphEventId, RunId, UserId } from "@tropism/domain/ids"
import type { TriggeringOccurrence, Occurrence } from "@tropism/domain/mcp-event"
import type { EntryStatus, HandledChange, HandledType, ProcessingEntry } from "@tropism/domain/processing"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, orDie, ProjectTransaction, brokenUniqueKey, retryTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { makeAttempts, type Attempts, makeEntryCompletion } from "./completion-and-retry.ts"
import { type EntryRow, entryTold, toEntry, askedRun, failedRun } from "./run-queries.ts"
import { noWorkerSentence } from "./run-texts.ts"

/** An entry to open: with its run, or waiting until the releaser gives it one. */
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
  /** The run that handles it; null for an entry that waits. */
  readonly runId: RunId | null
  /** Allows no second live entry of the same agent and object. */
  readonly exclusive: boolean
  /** When it may start; null for no delay. */
  readonly dueAt: string | null
  /** Why it waits; null when it has a run. */
  readonly reason: string | null
  /** It waits until the earlier entries of the same object have ended. */
  readonly standsInLine: boolean
  /**
   * It is not opened while the agent handles the object, unless that run waits for its provider or another event of the object already
   * waits.
   */
  readonly skips: boolean
  /** The person who requested it; absent otherwise. */
  readonly askedBy?: UserId
}

/** How many days ended entries, and events from external servers, are kept (S001-K02). */
export class RetentionDays extends Context.Reference<number>("@tropism/server/run/RetentionDays", {
  defaultValue: () => 30
}) {}

/** After how long an entry in processing without a worker, or a running run without progress, is abandoned (S000-R19). */
export class StuckAfterMs extends Context.Reference<number>("@tropism/server/run/StuckAfterMs", {
  defaultValue: () => runLimits.stuckAfterMs
}) {}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class ProcessingLog extends Context.Service<
  ProcessingLog,
  {
    /** Opens the entries that may be opened and returns their ids; the caller queues their runs in the same transaction. */
    readonly open: (entries: ReadonlyArray<NewEntry>) => Read<ReadonlySet<EntryId>>
    /** Records events that arrived while the agent was handling the same object (S001-R24). */
    readonly skip: (entries: ReadonlyArray<NewEntry>) => Read<void>
    /** Deletes entries that this transaction opened. */
    readonly withdraw: (ids: ReadonlyArray<EntryId>) => Read<void>
    readonly list: (
      agentId: AgentId,
      status: EntryStatus | undefined,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    readonly get: (id: EntryId) => Read<ProcessingEntry | undefined>
    /** Returns the attempts at the events of entries, by entry id. */
    readonly attemptsOf: (ids: ReadonlyArray<EntryId>) => Read<ReadonlyMap<EntryId, Attempts>>
    /** Returns the dead letters of an agent, newest first. */
    readonly listDead: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    /** Locks dead letters of an agent for this transaction, the oldest or the given ones. */
    readonly takeDead: (
      agentId: AgentId,
      ids: ReadonlyArray<EntryId> | undefined,
      limit: number
    ) => Read<ReadonlyArray<ProcessingEntry>>
    /** Clears the dead-letter mark of entries that are retried and of the earlier attempts at the same event. */
    readonly revive: (ids: ReadonlyArray<EntryId>) => Read<void>
    /** Abandons entries that are still in processing although their run has ended. */
    readonly abandonOrphans: Read<number>
    /** Deletes one batch of old ended entries of any project, and of occurrences without entries; returns the number deleted. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/run/ProcessingLog") {
  static readonly layer = Layer.effect(
    ProcessingLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const stuckAfterMs = yield* StuckAfterMs
      const { settle } = yield* makeEntryCompletion
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

/** Selects the subject of an entry: a graph event or an occurrence. */
const subjectOf = (sql: SqlClient.SqlClient) =>
  sql`case when row."entityType" <> 'mcpEvent' then row."eventId" end, case when row."entityType" = 'mcpEvent' then row."eventId" end`

// Manages the entries that wait: pending, without a run.
//
// A transaction that decides about an agent's waiting entries holds a lock (`reactions/agent-capacity.ts`), so two servers never decide at
// once. The entries of one agent and object form a line; parked ones are skipped until the head of their line, or the run on their object,
// has ended. The releaser decides what an entry may do, not this module.

/** A waiting entry with its event; several heads may lead to the same entry. */
export interface WaitingEntry {
  readonly agentId: AgentId
  /** The unparked entry that led to this one. */
  readonly headId: EntryId
  readonly id: EntryId
  readonly graphObjectId: string
  readonly createdAt: Date
  /** Whether the head's own delay has passed. */
  readonly isDue: boolean
  /** When the newest entry of the line arrived, where that matters. */
  readonly newestAt: Date | null
  readonly eventId: GraphEventId
  readonly entityType: HandledType
  readonly objectType: string
  /** The event of an external server, for an entry about one. */
  readonly occurrence: TriggeringOccurrence | null
  readonly eventType: HandledChange
  readonly objectVersion: number
  readonly attempt: number
  readonly rootEventId: GraphEventId
  readonly depth: number
  /** The person who requested it, or for whom it is retried; null otherwise. */
  readonly userId: UserId | null
  /** The event's position in the order of all events. */
  readonly seq: number
}

/** How to read the waiting entries of an agent. */
export interface Look {
  readonly id: AgentId
  /** The maximum number of heads. */
  readonly heads: number
  /** From this number of heads on, or when one of them is due, heads that are not due count too; 1 counts only due ones. */
  readonly batch: number
  /** The maximum number of entries of each head's line; null for the head alone. */
  readonly ofLine: number | null
  /** Whether to read when the newest entry of the line arrived. */
  readonly needsNewest: boolean
}

/** Why and until when an entry keeps waiting. */
export interface Postponed {
  readonly id: EntryId
  /** Null keeps the existing due time. */
  readonly dueAt: string | null
  readonly isParked: boolean
  readonly reason: string
}

type Line = Pick<WaitingEntry, "agentId" | "graphObjectId">

export class WaitingEntries extends Context.Service<
  WaitingEntries,
  {
    /** Returns agents with a due entry, in order of id, after the given one. */
    readonly dueAgents: (after: AgentId | undefined, limit: number) => Read<ReadonlyArray<AgentId>>
    /** Returns the waiting entries of agents: oldest head first, each line in the order of its versions. */
    readonly look: (looks: ReadonlyArray<Look>) => Read<ReadonlyArray<WaitingEntry>>
    /** Returns the lines with a live run and locks their entries until this transaction ends. */
    readonly busy: (lines: ReadonlyArray<Line>) => Read<ReadonlyArray<Line>>
    /**
     * Assigns runs to entries that still wait and returns their number; repeats the transaction when another run has started on an object.
     */
    readonly link: (
      entries: ReadonlyArray<{ readonly id: EntryId; readonly runId: RunId; readonly exclusive: boolean }>
    ) => Read<number>
    /** Keeps entries waiting and returns how many got another due time. */
    readonly postpone: (entries: ReadonlyArray<Postponed>) => Read<number>
    /** Ends entries that get no run, marks the failures before them as dead letters, and unparks the next entries of their lines. */
    readonly skip: (
      entries: ReadonlyArray<Line & Pick<WaitingEntry, "id"> & { readonly reason: string }>
    ) => Read<void>
    /**
     * Ends up to `limit` waiting entries of agents that no longer react, marks the failures before them as dead letters, and returns their
     * number.
     */
    readonly skipAllOf: (agents: ReadonlyArray<AgentId>, reason: string, limit: number) => Read<number>
    /**
     * Unparks, in all projects, entries that are parked without a reason and returns their number. There are none unless the server has a
     * defect.
     */
    readonly letGoParked: Effect.Effect<number>
  }
>()("@tropism/server/run/WaitingEntries") {
  static readonly layer = Layer.effect(
    WaitingEntries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { letGo } = yield* makeEntryCompletion
      const { skipping } = yield* makeAttempts
      const look = yield* makeLook
      /**
       * States "pending without a run" so that PostgreSQL finds the rows by their keys and does not scan the indexes of all waiting
       * entries.
       */
      const stillWaits = sql`case when entry.run_id is null then entry.status = 'pending' else false end`

      const dueAgents = Effect.fn("WaitingEntries.dueAgents")(function* (
        after: AgentId | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ agentId: AgentId }>`
          with recursive found(agent_id) as (
            (select agent_id from kb.agent_processing_log
              where project_id = ${projectId} and status = 'pending' and run_id is null and not parked
                and agent_id > ${after ?? "00000000-0000-0000-0000-000000000000"}
              order by agent_id, coalesce(due_at, created_at) limit 1)
            union all
            select (select next.agent_id from kb.agent_processing_log next
              where next.project_id = ${projectId} and next.status = 'pending' and next.run_id is null and not next.parked
                and next.agent_id > found.agent_id order by next.agent_id, coalesce(next.due_at, next.created_at) limit 1)
            from found where found.agent_id is not null
          )
          select found.agent_id from found cross join lateral (
            select coalesce(entry.due_at, entry.created_at) as due_at from kb.agent_processing_log entry
            where entry.project_id = ${projectId} and entry.agent_id = found.agent_id
              and entry.status = 'pending' and entry.run_id is null and not entry.parked
            order by coalesce(entry.due_at, entry.created_at) limit 1
          ) first where first.due_at <= now() limit ${limit}`
        return rows.map((row) => row.agentId)
      }, orDie)

      const busy = Effect.fn("WaitingEntries.busy")(function* (lines: ReadonlyArray<Line>) {
        if (lines.length === 0) return []
        return yield* sql<Line>`
          select live.agent_id, live.graph_object_id from kb.agent_processing_log live
          join (
            select distinct line."agentId" as agent_id, line."graphObjectId" as graph_object_id
            from jsonb_to_recordset(${JSON.stringify(lines)}::text::jsonb) as line("agentId" uuid, "graphObjectId" uuid)
          ) line on live.agent_id = line.agent_id and live.graph_object_id = line.graph_object_id
          where live.exclusive and live.status in ('pending', 'processing') and live.run_id is not null
          order by live.id for share of live`
      }, orDie)

      const link = Effect.fn("WaitingEntries.link")(function* (
        entries: ReadonlyArray<{ readonly id: EntryId; readonly runId: RunId; readonly exclusive: boolean }>
      ) {
        if (entries.length === 0) return 0
        const linked = yield* sql`
          update kb.agent_processing_log entry
          set run_id = row."runId", exclusive = row.exclusive, parked = false, due_at = null, reason = null
          from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as row(id uuid, "runId" uuid, exclusive boolean)
          where entry.id = row.id and ${stillWaits} returning 1`.pipe(
          // A concurrent transaction started a run on the object, which the decision could not see.
          Effect.catch((error) =>
            brokenUniqueKey(error) === "agent_processing_log_skip" ? retryTransaction : Effect.fail(error)
          )
        )
        return linked.length
      }, orDie)

      const postpone = Effect.fn("WaitingEntries.postpone")(function* (entries: ReadonlyArray<Postponed>) {
        if (entries.length === 0) return 0
        const rows = yield* sql<{ isMoved: boolean }>`
          update kb.agent_processing_log entry
          set due_at = coalesce(row."dueAt", entry.due_at), parked = row."isParked", reason = row.reason
          from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb)
            as row(id uuid, "dueAt" timestamptz, "isParked" boolean, reason text)
          where entry.id = row.id and ${stillWaits}
            and (coalesce(row."dueAt", entry.due_at), row."isParked", row.reason) is distinct from (entry.due_at, entry.parked, entry.reason)
          returning row."isParked" or row."dueAt" is not null as is_moved`
        return rows.filter((row) => row.isMoved).length
      }, orDie)

      const skip = Effect.fn("WaitingEntries.skip")(function* (
        entries: ReadonlyArray<Line & Pick<WaitingEntry, "id"> & { readonly reason: string }>
      ) {
        if (entries.length === 0) return
        yield* skipping(sql`
          update kb.agent_processing_log entry set status = 'skipped', parked = false, due_at = null, completed_at = now(), reason = row.reason
          from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as row(id uuid, reason text)
          where entry.id = row.id and ${stillWaits}`)
        yield* letGo(entries)
      }, orDie)

      const skipAllOf = Effect.fn("WaitingEntries.skipAllOf")(function* (
        agents: ReadonlyArray<AgentId>,
        reason: string,
        limit: number
      ) {
        if (agents.length === 0) return 0
        // Take the last entry of each line first, so that a line cut by the limit keeps its head.
        return yield* skipping(sql`
          update kb.agent_processing_log entry set status = 'skipped', parked = false, due_at = null, completed_at = now(), reason = ${reason}
          where entry.id = any(array(
            select id from kb.agent_processing_log
            where agent_id = any(${agents}::uuid[]) and status = 'pending' and run_id is null
            order by agent_id, graph_object_id, object_version desc limit ${limit}))`)
      }, orDie)

      const letGoParked = Effect.gen(function* () {
        const [row] = yield* sql<{ count: number }>`select kb.let_go_parked() as count`
        return row?.count ?? 0
      }).pipe(orDie)

      return WaitingEntries.of({ dueAgents, look, busy, link, postpone, skip, skipAllOf, letGoParked })
    })
  )
}

const makeLook = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fn("WaitingEntries.look")(function* (looks: ReadonlyArray<Look>) {
    if (looks.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<WaitingEntry>`
      select look.id as agent_id, head.id as head_id, head.is_due, member.id, member.graph_object_id, member.created_at, newest.created_at as newest_at,
        coalesce(member.event_id, member.occurrence_id) as event_id, member.entity_type, event.object_type, event.occurrence, member.event_type, member.object_version, member.attempt,
        coalesce(asked.id, event.root_event_id) as root_event_id, case when asked.id is null then event.depth else 0 end as depth, coalesce(member.asked_by, tried.user_id) as user_id, event.seq::float8 as seq
      from jsonb_to_recordset(${JSON.stringify(looks)}::text::jsonb)
        as look(id uuid, heads int, batch int, "ofLine" int, "needsNewest" boolean)
      cross join lateral (
        select look.batch > 1 and (
          exists (
            select 1 from kb.agent_processing_log entry
            where entry.project_id = ${projectId} and entry.agent_id = look.id
              and entry.status = 'pending' and entry.run_id is null and not entry.parked
              and coalesce(entry.due_at, entry.created_at) <= now())
          or exists (
            select 1 from kb.agent_processing_log entry
            where entry.project_id = ${projectId} and entry.agent_id = look.id
              and entry.status = 'pending' and entry.run_id is null and not entry.parked
            offset look.batch - 1)
        ) as is_ready
      ) batch
      cross join lateral (
        select entry.*, coalesce(entry.due_at, entry.created_at) <= now() as is_due from kb.agent_processing_log entry
        where entry.project_id = ${projectId} and entry.agent_id = look.id
          and entry.status = 'pending' and entry.run_id is null and not entry.parked
          and (coalesce(entry.due_at, entry.created_at) <= now() or (batch.is_ready and entry.attempt = 1))
        order by coalesce(entry.due_at, entry.created_at), entry.id limit look.heads
      ) head
      left join lateral (
        select entry.created_at from kb.agent_processing_log entry
        where look."needsNewest" and entry.agent_id = look.id and entry.graph_object_id = head.graph_object_id
          and entry.status = 'pending' and entry.run_id is null
        order by entry.object_version desc limit 1
      ) newest on true
      cross join lateral (
        (select entry.id, entry.graph_object_id, entry.created_at, entry.event_id, entry.occurrence_id, entry.entity_type, entry.event_type, entry.object_version,
          entry.attempt, entry.asked_by
        from kb.agent_processing_log entry
        where look."ofLine" is not null and entry.agent_id = look.id and entry.graph_object_id = head.graph_object_id
          and entry.status = 'pending' and entry.run_id is null
          and (entry.attempt = 1 or coalesce(entry.due_at, entry.created_at) <= now())
        order by entry.object_version, entry.attempt limit look."ofLine")
        union all
        select head.id, head.graph_object_id, head.created_at, head.event_id, head.occurrence_id, head.entity_type, head.event_type, head.object_version, head.attempt,
          head.asked_by
        where look."ofLine" is null
      ) member
      cross join lateral (
        select known.object_type, known.root_event_id, known.depth, known.seq, null::jsonb as occurrence
        from kb.graph_events known where known.id = member.event_id
        union all
        select source.name, told.id, 0, told.number, ${occurrenceJson(sql)}
        from kb.mcp_occurrences told join kb.mcp_event_sources source on source.id = told.source_id
        where told.id = member.occurrence_id
      ) event
      left join lateral (select run.id from (${askedRun(sql, sql`member.id`)}) run where member.attempt > 1) asked on true
      left join lateral (select run.user_id from (${failedRun(sql, sql`member.id`)}) run where member.attempt > 1) tried on true
      order by coalesce(head.due_at, head.created_at), head.id, member.object_version, member.attempt`
  }, orDie)
})

// Reads events from external servers.
//
// An occurrence never changes. The poller (`reactions/external-events.ts`) writes it with the entries of the agents that react to it, and
// it is deleted with the last of them.

/** An occurrence with the arguments that filter its source. */
export interface ToldOccurrence extends Occurrence {
  readonly arguments: unknown
}

/** Builds the trigger's JSON for an occurrence `told` of a `source`. */
const occurrenceJson = (sql: SqlClient.SqlClient) => sql`
  jsonb_build_object('id', told.id, 'server', source.server_name, 'name', source.name, 'eventId', told.event_id,
    'timestamp', to_char(told.happened_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`

interface OccurrenceRow extends Omit<ToldOccurrence, "createdAt" | "timestamp"> {
  readonly happenedAt: Date
  readonly createdAt: Date
}

/** The queries of occurrences. */
export const makeOccurrences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Returns the stored occurrences among these ids, by id. */
  const getAll = Effect.fnUntraced(function* (ids: ReadonlyArray<GraphEventId>) {
    if (ids.length === 0) return new Map<GraphEventId, ToldOccurrence>()
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<OccurrenceRow>`
      select told.id, source.server_name as server, source.name, source.arguments, told.event_id, told.happened_at, told.payload,
        told.payload_omitted, told.created_at
      from kb.mcp_occurrences told join kb.mcp_event_sources source on source.id = told.source_id
      where told.id = any(${ids}::uuid[]) and told.project_id = ${projectId}`
    return new Map(rows.map((row) => [row.id, toOccurrence(row)]))
  }, orDie)

  return { getAll }
})

const toOccurrence = ({ createdAt, happenedAt, ...row }: OccurrenceRow): ToldOccurrence => ({
  ...row,
  timestamp: happenedAt.toISOString(),
  createdAt: createdAt.toISOString()
})

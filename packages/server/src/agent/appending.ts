/**
 * Events on their way into a log: numbered where the log is thought to end, written only if it still does.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * One statement compares the end of the log, moves it and writes the events, so
 * numbers are contiguous whoever writes and however many servers there are. It
 * answers no row, and has written nothing, where the log has grown meanwhile or
 * the guard does not hold. What an append brings along is part of the statement,
 * and so is that the context is tainted by it.
 */
import {
  contextEventId,
  type ContextName,
  eventNumber,
  type LoggedEvent,
  type NewEvent
} from "@tropism/domain/context-event"
import type { ReducedContext } from "@tropism/domain/context"
import { type LoggedJson, readLogged } from "@tropism/domain/logged-event"
import { type ProjectId, RunId } from "@tropism/domain/ids"
import type { TaintSource } from "@tropism/domain/taint"
import { Clock, Effect, Option, Schema } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { remembering } from "./passages.ts"

/** Where a log ends: its last number, the number of the event that began the open turn, and whether a session is open. */
export interface LogEnd {
  readonly lastNumber: number
  readonly openTurnNumber: number | null
  readonly isSessionOpen: boolean
}

/** Where the log ended when it was folded. */
export const endOf = (context: ReducedContext): LogEnd => ({
  lastNumber: context.nextEventNumber - 1,
  openTurnNumber: Option.match(context.agentTurnStartedAtEventId, {
    onNone: () => null,
    onSome: eventNumber
  }),
  isSessionOpen: context.isSessionOpen
})

/** Whatever is written into a log at rest begins a session there; a fork's own log says first of what it is one (S004-R40). */
export const inSession = (
  events: ReadonlyArray<NewEvent>,
  isSessionOpen: boolean
): ReadonlyArray<NewEvent> => {
  const [first] = events
  const beginsItself = first?.type === "SessionStartedEvent" || first?.type === "ContextForkedEvent"
  return isSessionOpen || first === undefined || beginsItself
    ? events
    : [{ type: "SessionStartedEvent" }, ...events]
}

/** What must hold for an append, and what is written with it. */
export interface Terms {
  /** A select; nothing is written unless it answers a row. */
  readonly guard?: Statement.Fragment | undefined
  /** What of the events comes from untrusted sources, beside the files that say so themselves. */
  readonly taint?: ReadonlyArray<TaintSource> | undefined
  /** Further parts of the `with` list, each reading from `appended`, which has a row, with the `last_event_number`, exactly when the events are written. */
  readonly alongside?: ReadonlyArray<Statement.Fragment> | undefined
  /** What the statement answers besides: further columns, each behind a comma. */
  readonly telling?: Statement.Fragment | undefined
}

export interface Append {
  /** Answers a row exactly when the events are written. */
  readonly statement: Statement.Statement<{ readonly name: string }>
  /** The events as they are kept then. */
  readonly events: ReadonlyArray<LoggedEvent>
}

/** Makes the statement that appends events to a log that ends at `end`. */
export const makeAppend = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  log: { readonly projectId: ProjectId; readonly name: ContextName },
  end: LogEnd,
  said: ReadonlyArray<NewEvent>,
  { guard, taint = [], alongside = [], telling = sql.literal("") }: Terms = {}
) {
  const events = inSession(said, end.isSessionOpen)
  const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
  const logged = numberEvents(log.name, events, timestamp, end)
  const rows = JSON.stringify(logged.map((json, index) => toRow(json, end.lastNumber + index + 1)))
  const turn = events.findLastIndex((event) => event.type.startsWith("AgentTurn"))
  const opens = events[turn]?.type === "AgentTurnStartedEvent"
  const openTurn = turn < 0 ? end.openTurnNumber : opens ? end.lastNumber + turn + 1 : null
  const session = events.findLast((event) => event.type.startsWith("Session"))
  const isSessionOpen = session === undefined ? end.isSessionOpen : session.type === "SessionStartedEvent"
  const parts = [...remembering(sql, logged), ...handingOn(sql, events), ...alongside]
  const sources = [...taint, ...events.flatMap(taintOfFiles)]
  const records = events.flatMap(recordOf)
  const tainted =
    sources.length + records.length === 0
      ? sql.literal("")
      : sql`, tainted_by = nullif(kb.with_taint(tainted_by, ${JSON.stringify(sources)}::text::jsonb${taintOfRecords(sql, log.projectId, records)}, ${end.lastNumber + 1}::int), '[]')`
  const statement = sql<{ readonly name: string }>`
    with guard as (${guard ?? sql`select 1`}),
    appended as (
      update kb.contexts set last_event_number = ${end.lastNumber + events.length}, open_turn_number = ${openTurn}, is_session_open = ${isSessionOpen}${tainted}
      from guard where project_id = ${log.projectId} and name = ${log.name} and last_event_number = ${end.lastNumber}
      returning project_id, name, agent_id, last_event_number, is_remembered, owner
    ),
    written as (
      insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
      select ${log.projectId}::uuid, appended.name, row.number, row.type, row.payload, row.parent, row.triggers, ${timestamp}::timestamptz
      from appended, jsonb_to_recordset(${rows}::text::jsonb) as row(number int, type text, payload jsonb, parent text, triggers boolean)
      returning number, type, payload, created_at
    )${parts.length === 0 ? sql.literal("") : sql`, ${sql.csv(parts)}`}
    select name${telling} from appended`
  const append: Append = { statement, events: logged.map(readLogged) }
  return append
})

/** Who may read a context may read the files in it. */
const handingOn = (
  sql: SqlClient.SqlClient,
  events: ReadonlyArray<NewEvent>
): ReadonlyArray<Statement.Fragment> => {
  const digests = events.flatMap(filesOf).map(({ digest }) => digest)
  return digests.length === 0
    ? []
    : [
        sql`handed_on as (
          insert into kb.attachment_readers (project_id, digest, reader)
          select appended.project_id, file.digest, coalesce(appended.owner, '') from appended, kb.attachments file
          where file.project_id = appended.project_id and file.digest = any(${digests}::text[]) on conflict do nothing)`
      ]
}

/** The files that an event brings. */
const filesOf = (
  event: NewEvent
): ReadonlyArray<{ readonly digest: string; readonly untrusted?: boolean }> => {
  switch (event.type) {
    case "FileAttachmentEvent":
      return [event]
    case "HistoryGivenEvent":
      return event.messages.flatMap((message) => (message.role === "user" ? (message.files ?? []) : []))
    case "ToolCallCompletedEvent":
      return event.pictures ?? []
    default:
      return []
  }
}

/** Files that nobody vouches for. */
const taintOfFiles = (event: NewEvent): ReadonlyArray<TaintSource> =>
  filesOf(event).flatMap(({ digest, untrusted }) =>
    untrusted === true ? [{ kind: "attachment", id: digest }] : []
  )

/** The run whose words these are, where a record answered and no model. */
const recordOf = (event: NewEvent): ReadonlyArray<RunId> => {
  if (!("model" in event) || !event.model.startsWith(replayPrefix)) return []
  const id = event.model.slice(replayPrefix.length)
  return isRunId(id) ? [id] : []
}

const replayPrefix = "replay:"

const isRunId = Schema.is(RunId)

/** Words that were said behind something untrusted are no better said again: the contexts of these runs, where they are tainted. */
const taintOfRecords = (sql: SqlClient.SqlClient, projectId: ProjectId, runs: ReadonlyArray<RunId>) =>
  runs.length === 0
    ? sql.literal("")
    : sql` || (
        select coalesce(jsonb_agg(distinct jsonb_build_object('kind', 'context', 'id', origin.name)), '[]')
        from kb.agent_runs record
        join kb.contexts origin on origin.project_id = record.project_id and origin.name = record.context_name
        where record.project_id = ${projectId} and record.id = any(${runs}::uuid[])
          and origin.tainted_by is not null and origin.name <> contexts.name)`

/**
 * Gives events their ids, their time and their parents.
 *
 * An event that names no parent has the open turn's start, else the last event;
 * the first event of a log has none (S004-R18…R20).
 */
export const numberEvents = (
  name: ContextName,
  events: ReadonlyArray<NewEvent>,
  timestamp: string,
  { lastNumber, openTurnNumber }: LogEnd
): ReadonlyArray<LoggedJson> => {
  let isOpen = openTurnNumber !== null
  let parent =
    openTurnNumber !== null
      ? contextEventId(name, openTurnNumber)
      : lastNumber === 0
        ? null
        : contextEventId(name, lastNumber)
  return events.map((event, index) => {
    const { triggersAgentTurn = false, parentEventId, ...payload } = event
    const id = contextEventId(name, lastNumber + index + 1)
    const json: LoggedJson = {
      ...payload,
      id,
      timestamp,
      agentName: name,
      parentEventId: parentEventId ?? parent,
      triggersAgentTurn
    }
    const isTurnEvent = event.type.startsWith("AgentTurn")
    if (isTurnEvent) isOpen = event.type === "AgentTurnStartedEvent"
    if (isTurnEvent || !isOpen) parent = id
    return json
  })
}

/** The row of an event: its base fields are columns, the rest is payload. */
const toRow = (json: LoggedJson, number: number) => {
  const {
    type,
    id: _id,
    timestamp: _timestamp,
    agentName: _name,
    parentEventId,
    triggersAgentTurn,
    ...payload
  } = json
  return { number, type, payload, parent: parentEventId, triggers: triggersAgentTurn }
}

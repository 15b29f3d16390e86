/**
 * Appends events to logs: numbers them after the end that the caller knows and writes them only if the log still ends there.
 *
 * One statement makes any number of appends to different logs. For each it compares the end of the log, moves it and writes the events, so
 * numbers are contiguous however many writers there are. An append whose log has grown, or which the guard refuses, writes nothing and
 * returns no row. Taint and any further writes of an append are parts of the same statement.
 */
import type { ReducedContext } from "@tropism/domain/context"
import {
  contextEventId,
  type ContextName,
  eventNumber,
  type LoggedEvent,
  type NewEvent
} from "@tropism/domain/context-event"
import { type ProjectId, RunId } from "@tropism/domain/ids"
import { type LoggedJson, readLogged } from "@tropism/domain/logged-event"
import type { TaintSource } from "@tropism/domain/taint"
import { Clock, Effect, Option, Schema } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { hasWords, remembering } from "./passages.ts"

/** The end of a log: its last number, the number of the event that began the open turn, and whether a session is open. */
export interface LogEnd {
  readonly lastNumber: number
  readonly openTurnNumber: number | null
  readonly isSessionOpen: boolean
}

/** Returns the end of the log when it was folded. */
export const endOf = (context: ReducedContext): LogEnd => ({
  lastNumber: context.nextEventNumber - 1,
  openTurnNumber: Option.match(context.agentTurnStartedAtEventId, {
    onNone: () => null,
    onSome: eventNumber
  }),
  isSessionOpen: context.isSessionOpen
})

/** Begins a session before the first event that is appended to a log without one; a fork's own log records its origin first (S004-R40). */
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

/** The condition and the further writes of an append in its own statement. */
export interface Terms {
  /** A select; nothing is written unless it returns a row. */
  readonly guard?: Statement.Fragment | undefined
  /** The untrusted sources of the events, besides files that are marked untrusted themselves. */
  readonly taint?: ReadonlyArray<TaintSource> | undefined
  /** The input of the further parts, as columns of `appended`. */
  readonly fields?: AppendFields | undefined
  /** Further parts of the `with` list, which read from `appended`; that has a row exactly when the events are written. */
  readonly alongside?: ReadonlyArray<Statement.Fragment> | undefined
}

export interface Append {
  /** Returns a row exactly when the events are written. */
  readonly statement: Statement.Statement<{ readonly name: string }>
  /** The events as they are then stored. */
  readonly events: ReadonlyArray<LoggedEvent>
}

/** The input of an append's further parts, by column of `appended`; a part ignores the rows in which its column is null. */
export interface AppendFields {
  readonly run?: string | undefined
  readonly token?: string | undefined
  readonly agent?: string | undefined
  readonly use?: object | undefined
  readonly payers?: ReadonlyArray<object> | undefined
  readonly requests?: ReadonlyArray<object> | undefined
  readonly lists?: ReadonlyArray<object> | undefined
  readonly unmade?: ReadonlyArray<object> | undefined
  readonly stop?: string | undefined
}

/** Events with their numbers, and the end of their log after them. */
export interface PlannedAppend {
  readonly item: object
  readonly has: AppendKinds
  /** The events as they are stored once they are written. */
  readonly events: ReadonlyArray<LoggedEvent>
}

/** Which parts of the statement an append needs. */
interface AppendKinds {
  readonly words: boolean
  readonly taint: boolean
  readonly files: boolean
}

/** An append as JSON, ready for a statement. */
export interface AppendItem {
  readonly json: string
  readonly has: AppendKinds
}

export const itemOf = ({ has, item }: PlannedAppend, fields: AppendFields = {}): AppendItem => ({
  json: JSON.stringify({ ...item, ...fields }),
  has
})

/** Numbers events after the end of a log. */
export const planAppend = Effect.fnUntraced(function* (
  name: ContextName,
  end: LogEnd,
  said: ReadonlyArray<NewEvent>,
  taint: ReadonlyArray<TaintSource> = []
) {
  const events = inSession(said, end.isSessionOpen)
  const at = new Date(yield* Clock.currentTimeMillis).toISOString()
  const logged = numberEvents(name, events, at, end)
  const turn = events.findLastIndex((event) => event.type.startsWith("AgentTurn"))
  const opens = events[turn]?.type === "AgentTurnStartedEvent"
  const session = events.findLast((event) => event.type.startsWith("Session"))
  const sources = [...taint, ...events.flatMap(taintOfFiles)]
  const records = events.flatMap(recordOf)
  const files = events.flatMap(filesOf).map(({ digest }) => digest)
  const isTainting = sources.length + records.length > 0
  const planned: PlannedAppend = {
    item: {
      name,
      last: end.lastNumber,
      grown: end.lastNumber + events.length,
      turn: turn < 0 ? end.openTurnNumber : opens ? end.lastNumber + turn + 1 : null,
      session: session === undefined ? end.isSessionOpen : session.type === "SessionStartedEvent",
      at,
      events: logged.map((json, index) => toRow(json, end.lastNumber + index + 1)),
      ...(isTainting ? { taint: sources, records } : {}),
      ...(files.length === 0 ? {} : { files })
    },
    has: { words: hasWords(logged), taint: isTainting, files: files.length > 0 },
    events: logged.map(readLogged)
  }
  return planned
})

/** The guard, the further parts and the result of a statement with several appends. */
export interface BatchTerms {
  /** A select of the `n` of each item that may be written; it may read the items as `item`. */
  readonly guard: Statement.Fragment
  readonly alongside: ReadonlyArray<Statement.Fragment>
  /** The columns that the statement returns, and their source. */
  readonly answer: Statement.Fragment
}

/**
 * Builds the statement for appends to different logs, each written only if its log ends as planned and the guard allows it.
 *
 * **Details** `appended` has the columns of the context and of the item of each append that is written. An item is one JSON value, so no
 * part has to join the parts of all items with each other.
 */
export const appendStatement = <A extends object>(
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  appends: ReadonlyArray<AppendItem>,
  { alongside, answer, guard }: BatchTerms
) => {
  const items = `[${appends.map(({ json }, n) => `{"n":${n},${json.slice(1)}`).join()}]`
  const parts = [
    ...(appends.some(({ has }) => has.words) ? [remembering(sql)] : []),
    ...(appends.some(({ has }) => has.files) ? [handingOn(sql)] : []),
    ...alongside
  ]
  const isTainting = appends.some(({ has }) => has.taint)
  return sql<A>`
    with item as materialized (
      select * from jsonb_to_recordset(${items}::text::jsonb) as item(n int, name text, last int, grown int, turn int, session boolean,
        at timestamptz, events jsonb, taint jsonb, records jsonb, files jsonb, run uuid, token uuid, agent uuid, use jsonb, payers jsonb,
        requests jsonb, lists jsonb, unmade jsonb, stop text)
    ),
    guard as materialized (${guard}),
    appended as (
      update kb.contexts context set last_event_number = item.grown, open_turn_number = item.turn, is_session_open = item.session${isTainting ? tainting(sql, projectId) : sql.literal("")}
      from item join guard on guard.n = item.n
      where context.project_id = ${projectId} and context.name = item.name and context.last_event_number = item.last
      returning item.*, context.project_id, context.agent_id, context.last_event_number, context.is_remembered, context.owner
    ),
    written as (
      insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
      select ${projectId}::uuid, appended.name, event.number, event.type, event.payload, event.parent, event.triggers, appended.at
      from appended, jsonb_to_recordset(appended.events) as event(number int, type text, payload jsonb, parent text, triggers boolean)
    )${parts.length === 0 ? sql.literal("") : sql`, ${sql.csv(parts)}`}
    ${answer}`
}

/** Builds the statement for one append to a log that ends at `end`. */
export const makeAppend = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  log: { readonly projectId: ProjectId; readonly name: ContextName },
  end: LogEnd,
  said: ReadonlyArray<NewEvent>,
  { guard, taint = [], fields = {}, alongside = [] }: Terms = {}
) {
  const planned = yield* planAppend(log.name, end, said, taint)
  const statement = appendStatement<{ readonly name: string }>(
    sql,
    log.projectId,
    [itemOf(planned, fields)],
    {
      guard: guard === undefined ? sql`select 0 as n` : sql`select 0 as n from (${guard}) held`,
      alongside,
      answer: sql`select name from appended`
    }
  )
  const append: Append = { statement, events: planned.events }
  return append
})

/**
 * Text that follows untrusted input stays untrusted when it is repeated; a replayed answer inherits the taint of its original run's
 * context.
 */
const tainting = (sql: SqlClient.SqlClient, projectId: ProjectId) => sql`,
  tainted_by = case when item.taint is null then context.tainted_by else nullif(kb.with_taint(context.tainted_by, item.taint || (
    select coalesce(jsonb_agg(distinct jsonb_build_object('kind', 'context', 'id', origin.name)), '[]')
    from jsonb_array_elements_text(item.records) recorded
    join kb.agent_runs record on record.project_id = ${projectId} and record.id = recorded.value::uuid
    join kb.contexts origin on origin.project_id = record.project_id and origin.name = record.context_name
    where origin.tainted_by is not null and origin.name <> context.name), item.last + 1), '[]') end`

/** A reader of a context may read the files in it. */
const handingOn = (sql: SqlClient.SqlClient) => sql`handed_on as (
  insert into kb.attachment_readers (project_id, digest, reader)
  select distinct appended.project_id, file.digest, coalesce(appended.owner, '')
  from appended, jsonb_array_elements_text(appended.files) given
  join kb.attachments file on file.digest = given.value
  where appended.files is not null and file.project_id = appended.project_id on conflict do nothing)`

/** Returns the files that an event contains. */
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

/** Returns the files that are not vouched for. */
const taintOfFiles = (event: NewEvent): ReadonlyArray<TaintSource> =>
  filesOf(event).flatMap(({ digest, untrusted }) =>
    untrusted === true ? [{ kind: "attachment", id: digest }] : []
  )

/** Returns the run whose record gave the answer, for a replayed answer. */
const recordOf = (event: NewEvent): ReadonlyArray<RunId> => {
  if (!("model" in event) || !event.model.startsWith(replayPrefix)) return []
  const id = event.model.slice(replayPrefix.length)
  return isRunId(id) ? [id] : []
}

const replayPrefix = "replay:"

const isRunId = Schema.is(RunId)

/**
 * Gives events their ids, times and parents. The default parent is the open turn's start, otherwise the last event; the first event of a
 * log has none (S004-R18…R20).
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

/** Returns the row of an event: its base fields are columns, the rest is payload. */
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

/**
 * Stores the logs of contexts: append, read, fold, and notify.
 *
 * Only an append assigns numbers, times and parents (`appending.ts`), so ids are contiguous however many writers there are. Order: append,
 * commit, reduce, publish. Text deltas are never stored.
 */
import { type ReducedContext, fold, emptyContext } from "@tropism/domain/context"
import {
  contextEventId,
  type ContextEventId,
  type ContextName,
  type LoggedEvent,
  type NewEvent,
  eventNumber
} from "@tropism/domain/context-event"
import { decodeSnapshot, encodeSnapshot, foldVersion } from "@tropism/domain/context-snapshot"
import type { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { type LogBase, type LoggedJson, makeLogged } from "@tropism/domain/logged-event"
import { beginReplay, replay, replayOf } from "@tropism/domain/replay"
import type { Taint } from "@tropism/domain/taint"
import { Clock, Context, Effect, Layer, Schema, Fiber, Option } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction, Database } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { type Append, type LogEnd, makeAppend, type Terms } from "./appending.ts"

export class ContextExists extends Schema.TaggedError<ContextExists>()("ContextExists", {
  name: Schema.String
}) {}

/** A context without its events. */
export interface ContextHead {
  readonly name: ContextName
  readonly agentId: AgentId
  readonly eventCount: number
  /** The context whose log it shares, and the last shared event. */
  readonly forkedFrom: ForkPoint | null
  /** The agent is active in it, or was when its server died. */
  readonly isTurnOpen: boolean
  /** The first few untrusted sources that its model was shown. */
  readonly taintedBy: ReadonlyArray<Taint>
  /** A backtest run works in it, and it takes no messages. */
  readonly isOfBacktest: boolean
  /** Its owner; null for the project's. */
  readonly owner: UserId | null
  readonly createdAt: string
}

/** A context with its position in a list. */
export interface PlacedContext {
  readonly item: ContextHead
  readonly place: string
}

/** The filter of a list. */
export interface ListedContexts {
  /** The contexts of one agent. */
  readonly agentId: AgentId | undefined
  /** The project's contexts and this user's own; all when absent. */
  readonly reader: UserId | undefined
}

/** An event of a context at which another begins. */
export interface ForkPoint {
  readonly name: ContextName
  readonly at: number
}

/** The name prefix of contexts that chat clients create for their own requests, such as titles and tags. */
export const helperPrefix = "helper-"

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Contexts extends Context.Service<
  Contexts,
  {
    /** Creates a context, of the project or of one person; a fork begins with the log of another. */
    readonly create: (
      name: ContextName,
      agentId: AgentId,
      forkedFrom?: ForkPoint,
      owner?: UserId | null
    ) => InProject<ContextHead, ContextExists>
    /** Undefined both for a deleted context and for one that never existed. */
    readonly get: (name: ContextName) => InProject<ContextHead | undefined>
    /** Returns the contexts after a position of the list, newest first. */
    readonly list: (
      which: ListedContexts,
      after: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<PlacedContext>>
    /** Locks the log for the rest of the transaction and returns its end. */
    readonly lock: (name: ContextName) => InProject<LogEnd>
    /** Appends events in the given order, under the log's lock; returns them as stored. */
    readonly append: (
      name: ContextName,
      events: ReadonlyArray<NewEvent>,
      terms?: Omit<Terms, "guard">
    ) => InProject<ReadonlyArray<LoggedEvent>>
    /** Builds the one statement that appends events if the log still ends as the caller last saw it. */
    readonly plan: (
      projectId: ProjectId,
      name: ContextName,
      end: LogEnd,
      events: ReadonlyArray<NewEvent>,
      terms?: Terms
    ) => Effect.Effect<Append>
    /** Executes a planned append; false when the log has grown meanwhile or the terms do not hold. */
    readonly write: (name: ContextName, append: Append) => InProject<boolean>
    /** Notifies the readers of the log, for a plan that ran in its own transaction. */
    readonly grown: (projectId: ProjectId, name: ContextName) => Effect.Effect<void>
    /** Returns the events after a number, in order, as stored. */
    readonly read: (name: ContextName, after: number, limit: number) => InProject<ReadonlyArray<LoggedJson>>
    /** Folds a log from its newest snapshot; also returns the snapshot's last event number, or 0. */
    readonly open: (
      name: ContextName
    ) => InProject<{ readonly context: ReducedContext; readonly keptNumber: number }>
    /** Does the same without the number, or folds new events onto a given state. */
    readonly load: (name: ContextName, from?: ReducedContext) => InProject<ReducedContext>
    /** Folds a log up to an event. */
    readonly loadUpTo: (name: ContextName, last: number) => InProject<ReducedContext>
    /** Ends the sessions of contexts that have been inactive for long; returns their number (S004-R41). */
    readonly endSessions: InProject<number>
    /** Returns the statement that stores a state as the newest snapshot of its log; safe under concurrency. */
    readonly keeping: (
      projectId: ProjectId,
      name: ContextName,
      context: ReducedContext
    ) => Statement.Statement<{ readonly number: number }>
  }
>()("@tropism/server/agent/Contexts") {
  static readonly layer = Layer.effect(
    Contexts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier
      const { beginningOf, keeping } = yield* makeSnapshots

      const create = Effect.fn("Contexts.create")(function* (
        name: ContextName,
        agentId: AgentId,
        forkedFrom?: ForkPoint,
        owner: UserId | null = null
      ) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<HeadRow>`
          insert into kb.contexts (project_id, name, agent_id, owner, forked_from, forked_at, last_event_number, tainted_by)
          values (${projectId}, ${name}, ${agentId}, ${owner}, ${forkedFrom?.name ?? null}, ${forkedFrom?.at ?? null}, ${forkedFrom?.at ?? 0}, (
            select jsonb_agg(source order by (source ->> 'at')::int) from kb.contexts origin, jsonb_array_elements(origin.tainted_by) source
            where origin.project_id = ${projectId} and origin.name = ${forkedFrom?.name ?? null} and (source ->> 'at')::int <= ${forkedFrom?.at ?? 0}::int))
          on conflict do nothing returning *`
        return row ? toHead(row) : yield* new ContextExists({ name })
      }, orDie)

      const get = Effect.fn("Contexts.get")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] =
          yield* sql<HeadRow>`select * from kb.contexts where project_id = ${projectId} and name = ${name} and forgotten_at is null`
        return row && toHead(row)
      }, orDie)

      const list = Effect.fn("Contexts.list")(function* (
        { agentId, reader }: ListedContexts,
        after: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        // A position is a time in microseconds, as text because JavaScript would round it, and a name.
        const [micros, name] = after === undefined ? [] : splitPlace(after)
        const rows = yield* sql<HeadRow & { readonly micros: string }>`
          select *, (extract(epoch from created_at) * 1000000)::bigint::text as micros from kb.contexts
          where ${sql.and([
            sql`project_id = ${projectId} and forgotten_at is null`,
            // The prefix alone is not enough, because any context may have such a name.
            sql`not (starts_with(name, ${helperPrefix}) and exists (select from kb.brought_contexts brought
              where brought.project_id = contexts.project_id and brought.context_name = contexts.name))`,
            ...(agentId === undefined ? [] : [sql`agent_id = ${agentId}`]),
            ...(reader === undefined ? [] : [sql`(owner is null or owner = ${reader})`]),
            ...(micros === undefined || name === undefined
              ? []
              : [
                  sql`(created_at, name) < (timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', ${name})`
                ])
          ])} order by created_at desc, name desc limit ${limit}`
        return rows.map((row): PlacedContext => ({ item: toHead(row), place: `${row.micros}.${row.name}` }))
      }, orDie)

      const lock = Effect.fn("Contexts.lock")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{
          lastEventNumber: number
          openTurnNumber: number | null
          isSessionOpen: boolean
        }>`
          select last_event_number, open_turn_number, is_session_open from kb.contexts where project_id = ${projectId} and name = ${name} for no key update`
        const end: LogEnd = {
          lastNumber: row?.lastEventNumber ?? 0,
          openTurnNumber: row?.openTurnNumber ?? null,
          isSessionOpen: row?.isSessionOpen ?? false
        }
        return end
      }, orDie)

      const plan = Effect.fnUntraced(function* (
        projectId: ProjectId,
        name: ContextName,
        end: LogEnd,
        events: ReadonlyArray<NewEvent>,
        terms?: Terms
      ) {
        return yield* makeAppend(sql, { projectId, name }, end, events, terms)
      })

      const grown = (projectId: string, name: ContextName) => notifier.signal(`context:${projectId}/${name}`)

      const write = Effect.fn("Contexts.write")(function* (name: ContextName, { statement }: Append) {
        const { projectId } = yield* ProjectTransaction
        const [written] = yield* statement
        if (!written) return false
        yield* sql.afterCommit(grown(projectId, name))
        return true
      }, orDie)

      const append = Effect.fn("Contexts.append")(function* (
        name: ContextName,
        events: ReadonlyArray<NewEvent>,
        terms?: Omit<Terms, "guard">
      ) {
        if (events.length === 0) return []
        const { projectId } = yield* ProjectTransaction
        const planned = yield* plan(projectId, name, yield* lock(name), events, terms)
        return (yield* write(name, planned))
          ? planned.events
          : yield* Effect.die(new Error(`The log of ${name} grew although it was locked`))
      })

      const rowsOf = Effect.fnUntraced(function* (name: ContextName, after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        // Rows as arrays: objects with column names would cost more than the events of a long log.
        const rows = yield* sql`
          with recursive line as (
            select name, forked_from, coalesce(forked_at, 0) as forked_at, last_event_number as until from kb.contexts
            where project_id = ${projectId} and name = ${name}
            union all
            select origin.name, origin.forked_from, coalesce(origin.forked_at, 0), least(line.forked_at, line.until)
            from line join kb.contexts origin on origin.project_id = ${projectId} and origin.name = line.forked_from
            where line.forked_at > ${after}
          )
          select nullif(line.name, ${name}), number, type, payload, parent_event_id, triggers_agent_turn, created_at
          from line cross join lateral (
            select * from kb.context_events event
            where event.project_id = ${projectId} and event.context_name = line.name
              and event.number > greatest(line.forked_at, ${after}::int) and event.number <= line.until
            order by event.number limit ${limit}
          ) event
          order by number limit ${limit}`.values
        return rows as ReadonlyArray<EventRow>
      }, orDie)

      const read = Effect.fn("Contexts.read")((name: ContextName, after: number, limit: number) =>
        Effect.map(rowsOf(name, after, limit), (rows) =>
          rows.map((row): LoggedJson => ({ ...saidIn(row), ...givenIn(name, row) }))
        )
      )

      const readEvents = (name: ContextName, after: number, limit: number) =>
        Effect.map(rowsOf(name, after, limit), (rows) =>
          rows.map((row) => makeLogged(givenIn(name, row), saidIn(row)))
        )

      // An older server may have ended the session in the log without setting the column: then only the column is set.
      const endSessions = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const now = new Date(yield* Clock.currentTimeMillis).toISOString()
        const ended = yield* sql<{ readonly name: ContextName }>`
          with resting as materialized (
            select context.project_id, context.name, context.last_event_number as last, newest.type as session
            from kb.contexts context
            cross join lateral (
              select created_at from kb.context_events event
              where event.project_id = context.project_id and event.context_name = context.name
                and event.number = context.last_event_number
            ) said
            left join lateral (
              select type from kb.context_events event
              where event.project_id = context.project_id and event.context_name = context.name
                and event.type in ('SessionStartedEvent', 'SessionEndedEvent')
              order by number desc limit 1
            ) newest on true
            where context.project_id = ${projectId} and context.is_session_open and context.open_turn_number is null
              and context.forgotten_at is null
              and said.created_at <= ${now}::timestamptz - make_interval(secs => ${agentLimits.sessionRestMs / 1_000}::float8)
              and not exists (
                select 1 from kb.agent_runs run where run.project_id = context.project_id
                  and run.context_name = context.name and run.status in ('queued', 'running'))
            limit ${agentLimits.sessionBatchContexts} for no key update of context skip locked
          ), ended as (
            update kb.contexts context set is_session_open = false,
              last_event_number = context.last_event_number + (resting.session = 'SessionStartedEvent')::int
            from resting where context.project_id = resting.project_id and context.name = resting.name
              and context.last_event_number = resting.last
            returning context.project_id, context.name, resting.last, resting.session
          )
          insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
          select project_id, name, last + 1, 'SessionEndedEvent', '{}', name || ':' || last, false, ${now}::timestamptz
          from ended where session = 'SessionStartedEvent'
          returning context_name as name`
        for (const { name } of ended) yield* sql.afterCommit(grown(projectId, name))
        return ended.length
      }).pipe(orDie, Effect.withSpan("Contexts.endSessions"))

      const { load, loadUpTo, open } = makeFolding(readEvents, beginningOf)

      return Contexts.of({
        create,
        get,
        list,
        lock,
        append,
        plan,
        write,
        grown,
        read,
        open,
        load,
        loadUpTo,
        endSessions,
        keeping
      })
    })
  )
}

interface HeadRow {
  readonly name: ContextName
  readonly agentId: AgentId
  readonly lastEventNumber: number
  readonly openTurnNumber: number | null
  readonly forkedFrom: ContextName | null
  readonly forkedAt: number | null
  readonly taintedBy: ReadonlyArray<Taint> | null
  /** False only for a backtest's context. */
  readonly isRemembered: boolean
  readonly owner: UserId | null
  readonly createdAt: Date
}

/** An event's columns, in the order of the select. */
type EventRow = readonly [
  /** The context whose log it is in, when that is another one. */
  origin: ContextName | null,
  number: number,
  type: string,
  payload: Record<string, unknown>,
  parentEventId: ContextEventId | null,
  triggersAgentTurn: boolean,
  createdAt: Date
]

const saidIn = ([, , , payload]: EventRow) => payload

const givenIn = (
  name: ContextName,
  [origin, number, type, , parentEventId, triggersAgentTurn, createdAt]: EventRow
): LogBase => ({
  type,
  id: contextEventId(origin ?? name, number),
  timestamp: createdAt.toISOString(),
  agentName: origin ?? name,
  parentEventId,
  triggersAgentTurn
})

const toHead = (row: HeadRow): ContextHead => ({
  name: row.name,
  agentId: row.agentId,
  eventCount: row.lastEventNumber,
  forkedFrom:
    row.forkedFrom === null || row.forkedAt === null ? null : { name: row.forkedFrom, at: row.forkedAt },
  isTurnOpen: row.openTurnNumber !== null,
  taintedBy: row.taintedBy ?? [],
  isOfBacktest: !row.isRemembered,
  owner: row.owner,
  createdAt: row.createdAt.toISOString()
})

const splitPlace = (place: string): readonly [string, string] => {
  const dot = place.indexOf(".")
  return [place.slice(0, dot), place.slice(dot + 1)]
}

// Folds logs from their newest snapshot, or from a given state.
//
// A log is read in pages, at most two of them in memory, so a long log costs time but no memory.

type Read = (
  name: ContextName,
  after: number,
  limit: number
) => Effect.Effect<ReadonlyArray<LoggedEvent>, never, ProjectTransaction>

const makeFolding = (read: Read, beginningOf: Snapshots["beginningOf"]) => {
  /** Folds new events onto a state; the database reads the next page during the fold of the current one. */
  const goOn = Effect.fnUntraced(function* (name: ContextName, from: ReducedContext) {
    let context = from
    let page = yield* read(name, context.nextEventNumber - 1, agentLimits.logPageEvents)
    for (let last = lastOf(page); last !== undefined; last = lastOf(page)) {
      const next = yield* Effect.forkChild(read(name, last, agentLimits.logPageEvents))
      // Yield first, so that the query for the next page is sent before this page is folded.
      yield* Effect.yieldNow
      context = fold(page, context)
      page = yield* Fiber.join(next)
    }
    return fold(page, context)
  })

  const open = Effect.fn("Contexts.open")(function* (name: ContextName) {
    const { context, number } = yield* beginningOf(name, lastNumber)
    return { context: yield* goOn(name, context), keptNumber: number }
  }, orDie)

  const load = Effect.fn("Contexts.load")((name: ContextName, from?: ReducedContext) =>
    from === undefined ? Effect.map(open(name), ({ context }) => context) : goOn(name, from)
  )

  const loadUpTo = Effect.fn("Contexts.loadUpTo")(function* (name: ContextName, last: number) {
    let { context } = yield* beginningOf(name, last)
    while (context.nextEventNumber <= last) {
      const wanted = Math.min(agentLimits.logPageEvents, last - context.nextEventNumber + 1)
      const page = yield* read(name, context.nextEventNumber - 1, wanted)
      if (page.length === 0) return context
      context = fold(page, context)
    }
    return context
  }, orDie)

  return { open, load, loadUpTo }
}

/** Returns the number of the last event of a full page; undefined for any other page, because no page follows it. */
const lastOf = (page: ReadonlyArray<LoggedEvent>): number | undefined => {
  const last = page[agentLimits.logPageEvents - 1]
  return last && eventNumber(last.id)
}

/** Larger than any event number. */
const lastNumber = 2_147_483_647

// Stores snapshots: the fold of a log up to an event, so that opening a context costs only its new events.
//
// The log stays authoritative: without a snapshot, or with one of another fold version, the log is read from its beginning. A fork begins
// with a snapshot of the logs it shares, up to the shared event. Only the newest snapshot of a context is stored.

/** The starting point of a fold. */
export interface Beginning {
  readonly context: ReducedContext
  /** The number of its last event; 0 without a snapshot. */
  readonly number: number
}

type Snapshots = Effect.Success<typeof makeSnapshots>

const makeSnapshots = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Returns the newest snapshot of a log up to an event, or the empty context. */
  const beginningOf = Effect.fn("Contexts.beginningOf")(function* (name: ContextName, last: number) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ number: number; state: unknown }>`
      with recursive line as (
        select name, forked_from, forked_at, last_event_number as until from kb.contexts
        where project_id = ${projectId} and name = ${name} and last_event_number > ${agentLimits.snapshotEvents}
        union all
        select origin.name, origin.forked_from, origin.forked_at, least(line.forked_at, line.until)
        from line join kb.contexts origin on origin.project_id = ${projectId} and origin.name = line.forked_from
      )
      select snapshot.number, snapshot.state
      from line join kb.context_snapshots snapshot on snapshot.project_id = ${projectId} and snapshot.context_name = line.name
        and snapshot.version = ${foldVersion} and snapshot.number <= least(line.until, ${last}::int)
      order by snapshot.number desc limit 1`
    const beginning: Beginning = { context: emptyContext, number: 0 }
    if (!row) return beginning
    return Option.match(decodeSnapshot(row.state), {
      onNone: () => beginning,
      onSome: (context): Beginning => ({ context, number: row.number })
    })
  })

  /**
   * Returns the statement that stores a state as the newest snapshot of its log.
   *
   * **Details** A state is a function of the log, so concurrent or repeated writes are harmless; an earlier state never replaces a later
   * one. Snapshots of earlier fold versions are deleted.
   */
  const keeping = (projectId: ProjectId, name: ContextName, context: ReducedContext) =>
    sql<{ number: number }>`
      with outdated as (
        delete from kb.context_snapshots where project_id = ${projectId} and context_name = ${name} and version < ${foldVersion}
      )
      insert into kb.context_snapshots as snapshot (project_id, context_name, version, number, state)
      values (${projectId}, ${name}, ${foldVersion}, ${context.nextEventNumber - 1}, ${JSON.stringify(encodeSnapshot(context))}::text::jsonb)
      on conflict (project_id, context_name, version) do update
        set number = excluded.number, state = excluded.state, created_at = excluded.created_at
        where excluded.number > snapshot.number
      returning number`

  return { beginningOf, keeping }
})

/** Whether the log has grown enough since the last snapshot to store another. */
export const isSnapshotDue = (context: ReducedContext, keptNumber: number): boolean => {
  const behind = context.nextEventNumber - 1 - keptNumber
  // A snapshot of a large window is stored less often, so that the bytes written stay proportional to the new events.
  return (
    behind >= Math.max(agentLimits.snapshotEvents, context.messages.length) &&
    context.windowTokens <= agentLimits.snapshotMaxTokens
  )
}

// Replays the log of a context: folds it from its beginning and judges each event.
//
// It reads one page per transaction and keeps only the state, so a log of any length is replayed while others write to it. It makes no
// model request, calls no tool and writes nothing.

/** Replays the first events of a context, up to the given number. */
export const replayContext = Effect.fn("replayContext")(function* (
  projectId: ProjectId,
  name: ContextName,
  eventCount: number
) {
  const database = yield* Database
  const contexts = yield* Contexts
  let replaying = beginReplay
  while (replaying.events < eventCount) {
    const wanted = Math.min(agentLimits.logPageEvents, eventCount - replaying.events)
    const page = yield* database.inProject(projectId, contexts.read(name, replaying.events, wanted))
    if (page.length === 0) break
    replaying = replay(replaying, page)
  }
  return replayOf(replaying)
})

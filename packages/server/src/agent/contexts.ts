/**
 * The logs of contexts: append, read, fold, and listen.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * The append transaction alone gives numbers, times and parents, under the lock
 * of the context's row: ids are contiguous whoever writes, on however many
 * servers. Order: append, commit, reduce, publish. Text deltas pass by here and
 * are never kept.
 */
import {
  contextEventId,
  type ContextEventId,
  type ContextName,
  decodeEvent,
  type LoggedEvent,
  type NewEvent,
  type TextDeltaEvent
} from "@tropism/domain/context-event"
import { emptyContext, fold, type ReducedContext } from "@tropism/domain/context"
import type { AgentId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer, Option, PubSub, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"

export class ContextExists extends Schema.TaggedError<ContextExists>()("ContextExists", {
  name: Schema.String
}) {}

/** One context without its events. */
export interface ContextHead {
  readonly name: ContextName
  readonly agentId: AgentId
  readonly eventCount: number
  readonly createdAt: string
}

/** An event as it stands in the log and on the wire. */
export interface LoggedJson {
  readonly type: string
  readonly id: ContextEventId
  readonly timestamp: string
  readonly agentName: ContextName
  readonly parentEventId: ContextEventId | null
  readonly triggersAgentTurn: boolean
  readonly [field: string]: unknown
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Contexts extends Context.Service<
  Contexts,
  {
    readonly create: (name: ContextName, agentId: AgentId) => InProject<ContextHead, ContextExists>
    readonly get: (name: ContextName) => InProject<ContextHead | undefined>
    /** Locks the log for the rest of the transaction and says its last number. */
    readonly lock: (name: ContextName) => InProject<number>
    /** Appends events in the order given; answers them as they are kept. */
    readonly append: (
      name: ContextName,
      events: ReadonlyArray<NewEvent>
    ) => InProject<ReadonlyArray<LoggedEvent>>
    /** Events after a number, in order, as they are kept. */
    readonly read: (name: ContextName, after: number, limit: number) => InProject<ReadonlyArray<LoggedJson>>
    /** Folds what is new onto a state: everything there is to know of a context. */
    readonly load: (name: ContextName, from?: ReducedContext) => InProject<ReducedContext>
    /** Shows a piece of an answer to those who watch the context now. */
    readonly showDelta: (projectId: string, delta: TextDeltaEvent) => Effect.Effect<void>
    /** The pieces shown from now on, for all contexts of all projects of this program. */
    readonly deltas: Effect.Effect<
      PubSub.Subscription<{ readonly projectId: string; readonly delta: TextDeltaEvent }>,
      never,
      Scope.Scope
    >
  }
>()("@tropism/server/agent/Contexts") {
  static readonly layer = Layer.effect(
    Contexts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const wakeUps = yield* WakeUps
      const hub = yield* PubSub.sliding<{ readonly projectId: string; readonly delta: TextDeltaEvent }>(
        agentLimits.subscriberBuffer
      )

      const create = Effect.fn("Contexts.create")(function* (name: ContextName, agentId: AgentId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<HeadRow>`
          insert into kb.contexts (project_id, name, agent_id) values (${projectId}, ${name}, ${agentId})
          on conflict do nothing returning *`
        return row ? toHead(row) : yield* new ContextExists({ name })
      }, orDie)

      const get = Effect.fn("Contexts.get")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] =
          yield* sql<HeadRow>`select * from kb.contexts where project_id = ${projectId} and name = ${name}`
        return row && toHead(row)
      }, orDie)

      const lock = Effect.fn("Contexts.lock")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ lastEventNumber: number }>`
          select last_event_number from kb.contexts where project_id = ${projectId} and name = ${name} for no key update`
        return row?.lastEventNumber ?? 0
      }, orDie)

      /** Takes the next numbers of a log and notes which turn is open after them. */
      const takeNumbers = Effect.fnUntraced(function* (name: ContextName, events: ReadonlyArray<NewEvent>) {
        const { projectId } = yield* ProjectTransaction
        const last = events.findLastIndex((event) => event.type.startsWith("AgentTurn"))
        const opens = events[last]?.type === "AgentTurnStartedEvent"
        return yield* Effect.flatMap(
          sql<{ lastEventNumber: number; openTurnNumber: number | null }>`
          update kb.contexts context set last_event_number = before.last_event_number + ${events.length},
            open_turn_number = case when ${last}::int < 0 then before.open_turn_number
              when ${opens} then before.last_event_number + ${last + 1} end
          from (
            select project_id, name, last_event_number, open_turn_number from kb.contexts
            where project_id = ${projectId} and name = ${name} for no key update
          ) before
          where context.project_id = before.project_id and context.name = before.name
          returning before.last_event_number, before.open_turn_number`,
          onlyRow
        )
      })

      const append = Effect.fn("Contexts.append")(function* (
        name: ContextName,
        events: ReadonlyArray<NewEvent>
      ) {
        if (events.length === 0) return []
        const { projectId } = yield* ProjectTransaction
        const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
        const before = yield* takeNumbers(name, events)
        const logged = number(name, events, timestamp, before.lastEventNumber, before.openTurnNumber)
        const rows = JSON.stringify(
          logged.map((json, index) => toRow(json, before.lastEventNumber + index + 1))
        )
        yield* sql`
          insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
          select ${projectId}::uuid, ${name}, row.number, row.type, row.payload, row.parent, row.triggers, ${timestamp}::timestamptz
          from jsonb_to_recordset(${rows}::text::jsonb) as row(number int, type text, payload jsonb, parent text, triggers boolean)`
        yield* sql.afterCommit(wakeUps.signal(`context:${projectId}/${name}`))
        return logged.map(decodeEvent)
      }, orDie)

      const read = Effect.fn("Contexts.read")(function* (name: ContextName, after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EventRow>`
          select number, type, payload, parent_event_id, triggers_agent_turn, created_at from kb.context_events
          where project_id = ${projectId} and context_name = ${name} and number > ${after} order by number limit ${limit}`
        return rows.map((row): LoggedJson => ({
          ...row.payload,
          type: row.type,
          id: contextEventId(name, row.number),
          timestamp: row.createdAt.toISOString(),
          agentName: name,
          parentEventId: row.parentEventId,
          triggersAgentTurn: row.triggersAgentTurn
        }))
      }, orDie)

      const load = Effect.fn("Contexts.load")(function* (
        name: ContextName,
        from: ReducedContext = emptyContext
      ) {
        let context = from
        while (true) {
          const page = yield* read(name, context.nextEventNumber - 1, agentLimits.logPageEvents)
          context = fold(page.map(decodeEvent), context)
          if (page.length < agentLimits.logPageEvents) return context
        }
      })

      return Contexts.of({
        create,
        get,
        lock,
        append,
        read,
        load,
        showDelta: (projectId, delta) => Effect.asVoid(PubSub.publish(hub, { projectId, delta })),
        deltas: PubSub.subscribe(hub)
      })
    })
  )
}

/**
 * Gives events their ids, their time and their parents.
 *
 * An event that names no parent has the open turn's start, else the last event;
 * the first event of a log has none (S004-R18…R20).
 */
const number = (
  name: ContextName,
  events: ReadonlyArray<NewEvent>,
  timestamp: string,
  last: number,
  openTurn: number | null
): ReadonlyArray<LoggedJson> => {
  let isOpen = openTurn !== null
  let parent =
    openTurn !== null ? contextEventId(name, openTurn) : last === 0 ? null : contextEventId(name, last)
  return events.map((event, index) => {
    const { triggersAgentTurn = false, parentEventId, ...payload } = event
    const id = contextEventId(name, last + index + 1)
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

interface HeadRow {
  readonly name: ContextName
  readonly agentId: AgentId
  readonly lastEventNumber: number
  readonly createdAt: Date
}

interface EventRow {
  readonly number: number
  readonly type: string
  readonly payload: Record<string, unknown>
  readonly parentEventId: ContextEventId | null
  readonly triggersAgentTurn: boolean
  readonly createdAt: Date
}

const toHead = (row: HeadRow): ContextHead => ({
  name: row.name,
  agentId: row.agentId,
  eventCount: row.lastEventNumber,
  createdAt: row.createdAt.toISOString()
})

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

/** The open turn's id, when one is open. */
export const openTurnOf = (context: ReducedContext): ContextEventId | undefined =>
  Option.getOrUndefined(context.agentTurnStartedAtEventId)

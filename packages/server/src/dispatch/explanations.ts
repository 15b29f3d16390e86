/**
 * Finds what `explain` judges: the agents as they were when an event was
 * dispatched, and what the processing log says of them.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One agent or a page of them is the same three queries, and one more where the object was purged. Definitions come from
 * the versions, by the instant of the dispatch; nothing is judged here.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import {
  type Explained,
  type ExplainedAgent,
  explainEvent,
  explainOccurrence,
  type Handling
} from "@tropism/domain/explanation"
import { type GraphEvent, isPurged } from "@tropism/domain/graph"
import type { AgentId, GraphEventId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { decodeDefinition } from "../agent/rows.ts"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { Purges } from "../graph/purges.ts"
import { makeOccurrences } from "../run/occurrences.ts"
import { RetentionDays } from "../run/processing-log.ts"
import { type EntryRow, entryTold, toEntry } from "../run/rows.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Explanations extends Context.Service<
  Explanations,
  {
    /** Explains an event to one agent, also one that is deleted; undefined when there is no such agent. */
    readonly one: (event: GraphEvent, agentId: AgentId) => Read<Explanation | undefined>
    /** The same of what a foreign server told; undefined when there is no such occurrence or agent. */
    readonly ofOccurrence: (id: GraphEventId, agentId: AgentId) => Read<Explanation | undefined>
    /** What a foreign server told, to the agents of the project that were not deleted before it, newest first; undefined when it told no such thing. */
    readonly listOfOccurrence: (
      id: GraphEventId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Explanation & { readonly id: AgentId }> | undefined>
    /** Explains an event to the agents of the project that were not deleted before it, newest first. */
    readonly list: (
      event: GraphEvent,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Explanation & { readonly id: AgentId }>>
  }
>()("@tropism/server/dispatch/Explanations") {
  static readonly layer = Layer.effect(
    Explanations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const retentionDays = yield* RetentionDays
      const purges = yield* Purges
      const occurrences = yield* makeOccurrences

      const dispatchOf = Effect.fnUntraced(function* (event: GraphEvent) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ dispatchedAt: Date | null }>`
          select dispatched_at from kb.graph_events where id = ${event.id} and project_id = ${projectId}`
        return row?.dispatchedAt ?? null
      })

      const agentsWhere = Effect.fnUntraced(function* (
        where: Statement.Fragment,
        dispatchedAt: Date | null,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<AgentRow>`
          select agent.id, agent.name, agent.created_at, agent.deleted_at, agent.enabled, agent.disabled_reason, agent.updated_at,
            now() - make_interval(days => ${retentionDays}::int) as logged_since,
            version.version, version.definition, break.since as enabled_since
          from kb.agents agent
          left join lateral (
            select version, definition from kb.agent_versions
            where agent_id = agent.id and created_at <= coalesce(${dispatchedAt}::timestamptz, now()) order by version desc limit 1
          ) version on true
          left join lateral (
            select min(later.created_at) as since from kb.agent_versions later
            where later.agent_id = agent.id and later.version <= version.version and later.version > coalesce((
              select max(version) from kb.agent_versions disabled
              where disabled.agent_id = agent.id and disabled.version <= version.version and not (disabled.definition->>'enabled')::boolean), 0)
          ) break on true
          where agent.project_id = ${projectId} and ${where} order by agent.id desc limit ${limit}`
      })

      const handlingsOf = Effect.fnUntraced(function* (
        eventId: GraphEventId,
        agentIds: ReadonlyArray<AgentId>
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EntryRow & Pick<Handling, "runStatus" | "waitMessage">>`
          select distinct on (entry.agent_id) ${entryTold(sql, sql`entry`)}, run.status as run_status,
            case when run.status = 'queued' and run.waits_for is not null then run.wait_message end as wait_message
          from kb.agent_processing_log entry left join kb.agent_runs run on run.id = entry.run_id
          where entry.project_id = ${projectId} and (entry.event_id = ${eventId} or entry.occurrence_id = ${eventId}) and entry.agent_id = any(${agentIds}::uuid[])
          order by entry.agent_id, entry.attempt desc`
        return new Map(
          rows.map((row): [AgentId, Handling] => [
            row.agentId,
            { entry: toEntry(row), runStatus: row.runStatus, waitMessage: row.waitMessage }
          ])
        )
      })

      const explainTo = Effect.fnUntraced(function* (
        event: GraphEvent,
        where: Statement.Fragment,
        limit: number
      ) {
        const dispatchedAt = yield* dispatchOf(event)
        const purge = isPurged(event) ? yield* purges.of(event.entityId) : undefined
        const agents = yield* agentsWhere(where, dispatchedAt, limit)
        const handlings = yield* handlingsOf(
          event.id,
          agents.map(({ id }) => id)
        )
        return yield* Effect.forEach(agents, (row) =>
          Effect.map(toExplained(row, dispatchedAt), (agent) => {
            const handling = handlings.get(row.id)
            return shown(
              row,
              event.id,
              handling,
              explainEvent(agent, event, dispatchedAt?.toISOString() ?? null, handling, purge)
            )
          })
        )
      }, orDie)

      /** What a foreign server told was dispatched in the instant in which it was kept. */
      const occurrenceTo = Effect.fnUntraced(function* (
        id: GraphEventId,
        where: Statement.Fragment,
        limit: number
      ) {
        const told = (yield* occurrences.getAll([id])).get(id)
        if (!told) return undefined
        const dispatchedAt = new Date(told.createdAt)
        const agents = yield* agentsWhere(
          sql`${where} and (agent.deleted_at is null or agent.deleted_at > ${told.createdAt}::timestamptz)`,
          dispatchedAt,
          limit
        )
        const handlings = yield* handlingsOf(
          id,
          agents.map((agent) => agent.id)
        )
        return yield* Effect.forEach(agents, (row) =>
          Effect.map(toExplained(row, dispatchedAt), (agent) => {
            const handling = handlings.get(row.id)
            return shown(row, id, handling, explainOccurrence(agent, told, handling))
          })
        )
      }, orDie)

      const ofOccurrence = Effect.fn("Explanations.ofOccurrence")(function* (
        id: GraphEventId,
        agentId: AgentId
      ) {
        const found = yield* occurrenceTo(id, sql`agent.id = ${agentId}`, 1)
        return found?.[0]
      })

      const listOfOccurrence = Effect.fn("Explanations.listOfOccurrence")(
        (id: GraphEventId, before: string | undefined, limit: number) =>
          occurrenceTo(id, sql`agent.id < ${before ?? lastId}::uuid`, limit)
      )

      const one = Effect.fn("Explanations.one")(function* (event: GraphEvent, agentId: AgentId) {
        const [found] = yield* explainTo(event, sql`agent.id = ${agentId}`, 1)
        return found
      })

      const list = Effect.fn("Explanations.list")(
        (event: GraphEvent, before: string | undefined, limit: number) =>
          explainTo(
            event,
            sql`agent.id < ${before ?? lastId}::uuid
              and (agent.deleted_at is null or agent.deleted_at > ${event.createdAt}::timestamptz)`,
            limit
          )
      )

      return Explanations.of({ one, list, ofOccurrence, listOfOccurrence })
    })
  )
}

interface AgentRow {
  readonly id: AgentId
  readonly name: string
  readonly createdAt: Date
  readonly deletedAt: Date | null
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly updatedAt: Date
  readonly version: number | null
  readonly definition: unknown
  readonly enabledSince: Date | null
  readonly loggedSince: Date
}

const toExplained = Effect.fnUntraced(function* (row: AgentRow, dispatchedAt: Date | null) {
  const definition = row.version === null ? null : yield* Effect.orDie(decodeDefinition(row.definition))
  // What disabled the agent by itself left its reason in the row; a person leaves none.
  const isStopped =
    !row.enabled && row.disabledReason !== null && row.updatedAt <= (dispatchedAt ?? row.updatedAt)
  const agent: ExplainedAgent = {
    id: row.id,
    createdAt: row.createdAt.toISOString(),
    deletedAt: row.deletedAt?.toISOString() ?? null,
    definition,
    enabledSince: definition?.enabled === true ? (row.enabledSince?.toISOString() ?? null) : null,
    stopped: isStopped ? { since: row.updatedAt.toISOString(), reason: row.disabledReason } : null,
    loggedSince: row.loggedSince.toISOString()
  }
  return agent
})

const shown = (
  row: AgentRow,
  eventId: GraphEventId,
  handling: Handling | undefined,
  explained: Explained
) => ({
  id: row.id,
  agentId: row.id,
  agentName: row.name,
  agentVersion: row.version,
  eventId,
  ...explained,
  entry: handling?.entry ?? null,
  run: runOf(handling)
})

const runOf = (handling: Handling | undefined): Explanation["run"] =>
  handling?.entry.runId && handling.runStatus
    ? { id: handling.entry.runId, status: handling.runStatus }
    : null

/**
 * Reads a chain: everything that descends from one root event, and its usage.
 *
 * Every part is found by the root through an index, so the cost follows the size of the chain. These counts decide nothing: the caps are
 * checked on the locked row, in `runs/chain-caps.ts`.
 */
import {
  type Chain,
  type ChainLink,
  type ChainSummary,
  chainSummaryMaxEvents,
  type ChainTask
} from "@tropism/api/chains-api"
import { microsPerDollar, nothingUsed } from "@tropism/domain/chain"
import type { GraphEvent } from "@tropism/domain/graph"
import type { GraphEventId, RunId, TaskId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { dispatchLimits } from "../limits.ts"
import { Outbox } from "../outbox/outbox.ts"
import { isOfOwned } from "../review/task-queries.ts"
import { type UseRow, toUse } from "../runs/budgets.ts"
import { runsOfChain } from "../runs/run-queries.ts"
import { Runs } from "../runs/run-store.ts"
import { Projects } from "../tenancy/projects.ts"

/** A chain's origin, usage, limits and stops. */
export type ChainHead = Omit<Chain, "items" | "nextCursor">

type Stop = ChainHead["stops"][number]

export class Chains extends Context.Service<
  Chains,
  {
    /** Returns a chain's origin, usage and stops; undefined when no chain has this root. */
    readonly find: (
      rootEventId: GraphEventId
    ) => Effect.Effect<ChainHead | undefined, never, ProjectTransaction>
    /** Returns chains in which an agent ran, newest roots first, before an id. */
    readonly list: (
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ChainSummary>, never, ProjectTransaction>
    /** Returns events, runs and tasks of a chain after an id, in the order of creation. */
    readonly links: (
      rootEventId: GraphEventId,
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ChainLink>, never, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Chains") {
  static readonly layer = Layer.effect(
    Chains,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const outbox = yield* Outbox
      const projects = yield* Projects
      const runs = yield* Runs

      const countsOf = Effect.fnUntraced(function* (root: GraphEventId) {
        const { projectId } = yield* ProjectTransaction
        const ofChain = sql`project_id = ${projectId} and root_event_id = ${root}`
        return yield* Effect.flatMap(
          sql<Counts>`
            select events.events, events.refusals, events.depth,
              (select count(*)::int from (${runsOfChain(sql, projectId, root)}) run) as runs,
              (select count(*)::int from kb.tasks where ${ofChain}) as tasks
            from (
              select count(*)::int as events, coalesce(sum(jsonb_array_length(refusals)), 0)::int as refusals, coalesce(max(depth), 0) as depth
              from kb.graph_events where ${ofChain}
            ) events`,
          onlyRow
        )
      })

      const stopsOf = Effect.fnUntraced(function* (root: GraphEventId) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<Stop>`
          select event.id as event_id, refusal.value->>'agentId' as agent_id, refusal.value->>'rule' as rule, refusal.value->>'reason' as reason
          from kb.graph_events event, jsonb_array_elements(event.refusals) refusal
          where event.project_id = ${projectId} and event.root_event_id = ${root}
            and refusal.value ->> 'rule' = any(${stopRules}::text[])
          order by event.id desc limit ${dispatchLimits.chainStopsShown}`
      })

      const useOf = Effect.fnUntraced(function* (root: GraphEventId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<UseRow>`
          select runs, input_tokens, output_tokens, cost_micros from kb.budgets
          where project_id = ${projectId} and scope = 'chain' and scope_id = ${root}`
        return row ? toUse(row) : nothingUsed
      })

      const find = Effect.fn("Chains.find")(function* (root: GraphEventId) {
        const event = yield* outbox.get(root)
        const began = event ?? (yield* runs.get(root as string as RunId))
        if (began?.rootEventId !== root) return undefined
        const { chainLimits } = yield* projects.settings
        const { depth, ...counts } = yield* countsOf(root)
        const { costMicros, ...used } = yield* useOf(root)
        return {
          rootEventId: root,
          rootEvent: event ?? null,
          use: { depth, ...used, costUsd: costMicros / microsPerDollar },
          limits: chainLimits,
          counts,
          stops: yield* stopsOf(root)
        }
      }, orDie)

      const tasksOf = Effect.fnUntraced(function* (
        root: GraphEventId,
        after: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<TaskRow>`
          select id, number, type, status, case when type = 'question' and ${isOfOwned(sql, "tasks", sql`context.owner is not null`)} then 'A question' else title end as title, run_id, depth, created_at, resolved_at from kb.tasks
          where project_id = ${projectId} and root_event_id = ${root} and id > ${after ?? nil}::uuid order by id limit ${limit}`
        return rows.map(toTask)
      })

      /** Returns the undos of events, by event; an undo is found by the events that it reverted. */
      const undosOf = Effect.fnUntraced(function* (events: ReadonlyArray<GraphEvent>) {
        const { projectId } = yield* ProjectTransaction
        const entities = [...new Set(events.map(({ entityId }) => entityId))]
        const rows = yield* sql<UndoneRow>`
          select distinct on (undone.id) undone.id as event_id, task.id as task_id, task.number::int
          from kb.graph_events back
          join kb.tasks task on task.id = back.task_id and task.type = 'undo'
          join kb.undo_items item on item.task_id = task.id and item.revision = task.revision and item.entity_id = back.entity_id
          cross join unnest(item.events) undone(id)
          where back.project_id = ${projectId} and back.entity_id = any(${entities}::uuid[]) and back.undoes <> '{}'
            and item.status = 'ready' and not item.left_out
          order by undone.id, task.number desc`
        return new Map(rows.map(({ eventId, number, taskId }) => [eventId, { taskId, number }]))
      })

      const links = Effect.fn("Chains.links")(function* (
        root: GraphEventId,
        after: string | undefined,
        limit: number
      ) {
        const events = yield* outbox.chain(root, after, limit)
        const undone = yield* undosOf(events)
        const found: ReadonlyArray<ChainLink> = [
          ...events.map((event) => ({
            type: "event" as const,
            id: event.id,
            event,
            undoneBy: undone.get(event.id) ?? null
          })),
          ...(yield* runs.chain(root, after, limit)).map((run) => ({
            type: "run" as const,
            id: run.id,
            run
          })),
          ...(yield* tasksOf(root, after, limit)).map((task) => ({
            type: "task" as const,
            id: task.id,
            task
          }))
        ]
        return found.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit)
      }, orDie)

      const list = Effect.fn("Chains.list")(function* (before: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        // A reaction's run counts in the chain's row before it begins; one that a person triggered counts at its first use of tokens.
        const rows = yield* sql<SummaryRow>`
          select chain.scope_id as id, chain.runs, chain.input_tokens, chain.output_tokens, chain.cost_micros,
            ran.agents, ran.open_runs, ran.all_runs, ran.first_run_at, told.events, told.depth, told.is_stopped
          from (
            select * from kb.budgets
            where project_id = ${projectId} and scope = 'chain' and scope_id < ${before ?? lastId}::uuid
            order by scope_id desc limit ${limit}
          ) chain
          cross join lateral (
            select array_agg(distinct agent.name order by agent.name) as agents, count(*)::int as all_runs, min(run.created_at) as first_run_at,
              (count(*) filter (where run.status in ('queued', 'running', 'paused')))::int as open_runs
            from kb.agent_runs run join kb.agents agent on agent.id = run.agent_id
            where run.id = any(array(${runsOfChain(sql, projectId, sql`chain.scope_id`)}))
          ) ran
          cross join lateral (
            select count(*)::int as events, coalesce(max(event.depth), 0) as depth, coalesce(bool_or(exists (
              select from jsonb_array_elements(event.refusals) refusal where refusal ->> 'rule' = any(${stopRules}::text[]))), false) as is_stopped
            from (
              select depth, refusals from kb.graph_events
              where project_id = ${projectId} and root_event_id = chain.scope_id order by id limit ${chainSummaryMaxEvents}
            ) event
          ) told
          order by chain.scope_id desc`
        const roots = yield* outbox.getAll(rows.map(({ id }) => id))
        const eventOf = new Map(roots.map((event) => [event.id, event]))
        return rows.map(
          ({ id, agents, allRuns, depth, events, firstRunAt, openRuns, isStopped, ...use }): ChainSummary => {
            const { costMicros, ...used } = toUse(use)
            const rootEvent = eventOf.get(id) ?? null
            return {
              id,
              rootEvent,
              agents: agents ?? [],
              use: { depth, ...used, costUsd: costMicros / microsPerDollar },
              events,
              runs: allRuns,
              openRuns,
              beganAt: rootEvent?.createdAt ?? firstRunAt?.toISOString() ?? null,
              isStopped
            }
          }
        )
      }, orDie)

      return Chains.of({ find, list, links })
    })
  )
}

/** The rules that stop a chain for every agent. */
const stopRules = ["chainDepth", "chainRuns", "chainTokens", "chainCost", "oscillation"]

const nil = "00000000-0000-0000-0000-000000000000"

interface Counts {
  readonly events: number
  readonly refusals: number
  readonly depth: number
  readonly runs: number
  readonly tasks: number
}

interface SummaryRow extends UseRow {
  readonly id: GraphEventId
  /** Null when the runs have been deleted. */
  readonly agents: ReadonlyArray<string> | null
  readonly openRuns: number
  readonly allRuns: number
  /** Null when the runs have been deleted. */
  readonly firstRunAt: Date | null
  readonly events: number
  readonly depth: number
  readonly isStopped: boolean
}

interface UndoneRow {
  readonly eventId: GraphEventId
  readonly taskId: TaskId
  readonly number: number
}

interface TaskRow extends Omit<ChainTask, "number" | "createdAt" | "resolvedAt"> {
  readonly number: bigint
  readonly createdAt: Date
  readonly resolvedAt: Date | null
}

const toTask = (row: TaskRow): ChainTask => ({
  id: row.id,
  number: Number(row.number),
  type: row.type,
  status: row.status,
  title: row.title,
  runId: row.runId,
  depth: row.depth,
  createdAt: row.createdAt.toISOString(),
  resolvedAt: row.resolvedAt?.toISOString() ?? null
})

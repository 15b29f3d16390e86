/**
 * Backtests as people ask for them: begin one, look at it, end it.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Begun is a row and nothing more; the backtester does the rest. That an agent has
 * one at a time is a unique key. Whether the agent is enabled is no matter: a
 * backtest asks what it would have done.
 */
import type { Agent } from "@tropism/domain/agent"
import { type Backtest, backtestBounds, type BacktestInput } from "@tropism/domain/backtest"
import { microsPerDollar } from "@tropism/domain/chain"
import type { AgentId, BacktestId, ObjectId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Agents } from "../agent/agents.ts"
import { brokenUniqueKey, lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { makeBacktestRuns } from "./backtest-runs.ts"

/** Why a backtest was not begun, or not ended. */
export class BacktestRefused extends Schema.TaggedError<BacktestRefused>()("BacktestRefused", {
  reason: Schema.Literals(["noVersion", "noReaction", "noObject", "noWindow", "underWay", "over"]),
  detail: Schema.String,
  /** The place of an object that is not there. */
  index: Schema.optional(Schema.Int)
}) {}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Backtests extends Context.Service<
  Backtests,
  {
    readonly begin: (agent: Agent, input: BacktestInput, by: UserId) => InProject<Backtest, BacktestRefused>
    readonly get: (agentId: AgentId, id: BacktestId) => InProject<Backtest | undefined>
    /** Those of an agent, the newest first. */
    readonly list: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<Backtest>>
    /** Ends one with all of its runs; undefined when there is none. */
    readonly cancel: (agentId: AgentId, id: BacktestId) => InProject<Backtest | undefined, BacktestRefused>
  }
>()("@tropism/server/dispatch/Backtests") {
  static readonly layer = Layer.effect(
    Backtests,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents
      const ids = yield* Ids
      const wakeUps = yield* WakeUps
      const { cancelLive, end, isLive } = yield* makeBacktestRuns

      const select = (which: Statement.Fragment, limit: number) =>
        sql<BacktestRow>`
          select test.*, agent.name as agent_name, test.chosen_events - waiting.count - live.count as done
          from kb.backtests test join kb.agents agent on agent.id = test.agent_id
          cross join lateral (
            select count(*)::int as count from kb.backtest_events event where event.backtest_id = test.id and event.run_id is null
          ) waiting
          cross join lateral (select count(*)::int as count from kb.agent_runs run where run.backtest_id = test.id and ${isLive}) live
          where ${which} order by test.id desc limit ${limit}`

      const get = Effect.fn("Backtests.get")(function* (agentId: AgentId, id: BacktestId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* select(
          sql`test.project_id = ${projectId} and test.agent_id = ${agentId} and test.id = ${id}`,
          1
        )
        return row && toBacktest(row)
      }, orDie)

      const list = Effect.fn("Backtests.list")(function* (
        agentId: AgentId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* select(
          sql`test.project_id = ${projectId} and test.agent_id = ${agentId}
            and test.id < ${before ?? lastId}::uuid`,
          limit
        )
        return rows.map(toBacktest)
      }, orDie)

      /** The version that is tried out; over days, if it is one that events wake. */
      const checkVersion = Effect.fnUntraced(function* (agent: Agent, number: number, isOverDays: boolean) {
        const version = yield* agents.version(agent.id, number)
        if (!version)
          return yield* refuse(
            "noVersion",
            `${agent.name} has no version ${number}: its newest is ${agent.version}`
          )
        const { reactionConfig, triggerType } = version.definition
        if (isOverDays && (triggerType !== "reaction" || reactionConfig === null))
          return yield* refuse(
            "noReaction",
            `Version ${number} of ${agent.name} does not react to events (its trigger is ${triggerType}), so there are none to run it over: choose objects instead`
          )
      })

      /** Says of the first object that has no event here that it is not there. */
      const checkObjects = Effect.fnUntraced(function* (objectIds: ReadonlyArray<ObjectId>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ id: ObjectId }>`
          select id from kb.graph_objects where project_id = ${projectId} and id = any(${objectIds}::uuid[])`
        const there = new Set(rows.map(({ id }) => id))
        const index = objectIds.findIndex((id) => !there.has(id))
        if (index !== -1)
          return yield* new BacktestRefused({ reason: "noObject", detail: "There is no such object", index })
      })

      /** What it runs over: days, or objects, and not both. */
      const checkChoice = Effect.fnUntraced(function* ({ days, objectIds }: BacktestInput) {
        if ((days ?? null) === null && (objectIds ?? null) === null)
          return yield* refuse(
            "noWindow",
            "Say how many days back the events lie, or choose objects by objectIds"
          )
        if ((days ?? null) !== null && (objectIds ?? null) !== null)
          return yield* refuse("noWindow", "Give days or objectIds, not both")
        if (objectIds) yield* checkObjects(objectIds)
      })

      const begin = Effect.fn("Backtests.begin")(function* (agent: Agent, input: BacktestInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const version = input.version ?? agent.version
        yield* checkChoice(input)
        yield* checkVersion(agent, version, !input.objectIds)
        const days = input.days ?? null
        const id = (yield* ids.next) as BacktestId
        const maxCostMicros =
          typeof input.maxCostUsd === "number" ? Math.round(input.maxCostUsd * microsPerDollar) : null
        yield* sql
          .withTransaction(
            sql`
            insert into kb.backtests (id, project_id, agent_id, agent_version, days, object_ids, max_events, max_cost_micros, from_at, to_at, created_by)
            values (${id}, ${projectId}, ${agent.id}, ${version}, ${days}, ${input.objectIds ?? null}::uuid[],
              ${input.maxEvents ?? input.objectIds?.length ?? backtestBounds.defaultEvents}, ${maxCostMicros},
              ${days === null ? sql`(select min(created_at) from kb.graph_objects where id = any(${input.objectIds ?? []}::uuid[]))` : sql`now() - make_interval(days => ${days}::int)`}, now(), ${by})`
          )
          .pipe(
            Effect.catchIf(
              (error) => brokenUniqueKey(error) === "backtests_live",
              () =>
                refuse("underWay", `${agent.name} has a backtest under way: wait for its end, or cancel it`)
            )
          )
        yield* sql.afterCommit(wakeUps.signal("backtests"))
        const begun = yield* get(agent.id, id)
        return begun ?? (yield* Effect.die(new Error(`Backtest ${id} is gone while it is made`)))
      }, orDie)

      const cancel = Effect.fn("Backtests.cancel")(function* (agentId: AgentId, id: BacktestId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ status: Backtest["status"] }>`
          select status from kb.backtests where id = ${id} and agent_id = ${agentId} and project_id = ${projectId} for no key update`
        if (!row) return undefined
        if (!(yield* end(id, "cancelled", null)))
          return yield* refuse("over", `The backtest is ${row.status} already`)
        yield* cancelLive(id, "Its backtest was cancelled")
        return yield* get(agentId, id)
      }, orDie)

      return Backtests.of({ begin, get, list, cancel })
    })
  )
}

const refuse = (reason: BacktestRefused["reason"], detail: string) =>
  Effect.fail(new BacktestRefused({ reason, detail }))

interface BacktestRow extends Pick<
  Backtest,
  | "id"
  | "agentId"
  | "agentName"
  | "agentVersion"
  | "status"
  | "days"
  | "objectIds"
  | "maxEvents"
  | "detail"
  | "createdBy"
> {
  readonly maxCostMicros: bigint | null
  readonly fromAt: Date
  readonly toAt: Date
  readonly lookedEvents: number
  readonly matchedEvents: number
  readonly chosenEvents: number
  readonly done: number
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
}

const toBacktest = (row: BacktestRow): Backtest => ({
  id: row.id,
  agentId: row.agentId,
  agentName: row.agentName,
  agentVersion: row.agentVersion,
  status: row.status,
  days: row.days,
  objectIds: row.objectIds,
  maxEvents: row.maxEvents,
  maxCostUsd: row.maxCostMicros === null ? null : Number(row.maxCostMicros) / microsPerDollar,
  from: row.fromAt.toISOString(),
  to: row.toAt.toISOString(),
  events: { looked: row.lookedEvents, matched: row.matchedEvents, chosen: row.chosenEvents, done: row.done },
  detail: row.detail,
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null
})

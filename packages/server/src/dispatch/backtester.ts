/**
 * Brings backtests along: chooses their events, gives each its run, and ends them.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A backtest is its row, so whichever server holds that for a moment does the next
 * thing: a server that dies has done all of it or nothing. An event and its run
 * are one statement apart in one transaction, so each event is run once. Only a
 * few runs wait at a time; what is spent is asked before more are queued.
 */
import { tellDollars } from "@tropism/domain/chain"
import { ContextName } from "@tropism/domain/context-event"
import type { ChangeType, EntityType } from "@tropism/domain/graph"
import type { AgentId, BacktestId, GraphEventId, ObjectId, ProjectId, RunId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agent/agents.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { drive, share, untilWoken, WakeUps } from "../outbox/wake-ups.ts"
import { Runs } from "../run/runs.ts"
import { makeBacktestEvents } from "./backtest-events.ts"
import { backtestLimits } from "./backtest-limits.ts"
import { makeBacktestRuns } from "./backtest-runs.ts"
import { reactionRun } from "./reaction-run.ts"

/** A backtest that is not over, held for this transaction. */
interface DueBacktest {
  readonly id: BacktestId
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly status: "queued" | "running"
  readonly fromAt: Date
  readonly toAt: Date
  readonly maxEvents: number
  readonly objectIds: ReadonlyArray<ObjectId> | null
  readonly maxCostMicros: bigint | null
  readonly isAgentGone: boolean
}

/** An event that has no run yet. */
interface NextEvent {
  readonly number: number
  readonly eventId: GraphEventId
  readonly eventType: ChangeType
  readonly entityType: EntityType
  readonly graphObjectId: string
  readonly objectType: string
  readonly objectVersion: number
}

export class Backtester extends Context.Service<
  Backtester,
  {
    /** Brings backtests along for ever. */
    readonly run: Effect.Effect<never>
    /** One turn of each project that has a backtest; true when anything moved. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Backtester") {
  static readonly layer = Layer.effect(
    Backtester,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const agents = yield* Agents
      const runs = yield* Runs
      const ids = yield* Ids
      const wakeUps = yield* WakeUps
      const { keepChosen } = yield* makeBacktestEvents
      const { cancelLive, countLive, end, spentMicros } = yield* makeBacktestRuns

      const due = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<DueBacktest>`
          select test.id, test.agent_id, test.agent_version, test.status, test.from_at, test.to_at, test.object_ids, test.max_events, test.max_cost_micros,
            agent.deleted_at is not null as is_agent_gone
          from kb.backtests test join kb.agents agent on agent.id = test.agent_id
          where test.project_id = ${projectId} and test.status in ('queued', 'running')
          order by test.id limit ${backtestLimits.batchBacktests} for no key update of test skip locked`
      })

      /** Chooses the events, once: the state that is left decides. */
      const begin = Effect.fnUntraced(function* (test: DueBacktest) {
        const version = yield* agents.version(test.agentId, test.agentVersion)
        const config = version?.definition.reactionConfig ?? null
        const { chosen, looked, matched } = yield* keepChosen(test, config)
        yield* sql`
          update kb.backtests set status = 'running', started_at = now(), looked_events = ${looked}, matched_events = ${matched}, chosen_events = ${chosen}
          where id = ${test.id} and status = 'queued'`
        yield* CrashPoint.hit("backtest.beforeBegun")
      })

      const nextEvents = (test: DueBacktest, limit: number) =>
        sql<NextEvent>`
          select chosen.number, event.id as event_id, event.type as event_type, event.entity_type, event.entity_id as graph_object_id,
            event.object_type, event.version as object_version
          from kb.backtest_events chosen join kb.graph_events event on event.id = chosen.event_id
          where chosen.backtest_id = ${test.id} and chosen.run_id is null order by chosen.number limit ${limit}`

      /** Queues a run for each event. It is a chain of its own, which nobody is told of. */
      const queue = Effect.fnUntraced(function* (test: DueBacktest, events: ReadonlyArray<NextEvent>) {
        const begun: Array<{ readonly number: number; readonly runId: RunId; readonly event: NextEvent }> = []
        for (const event of events)
          begun.push({ number: event.number, runId: (yield* ids.next) as RunId, event })
        yield* runs.queue(
          begun.map(({ event, runId }) => ({
            ...reactionRun(runId, test, [
              { ...event, rootEventId: runId as string as GraphEventId, depth: 0 }
            ]),
            contextName: ContextName.make(`run-${runId}`),
            backtestId: test.id
          }))
        )
        yield* sql`
          update kb.backtest_events chosen set run_id = row."runId"
          from jsonb_to_recordset(${JSON.stringify(begun.map(({ number, runId }) => ({ number, runId })))}::text::jsonb)
            as row(number int, "runId" uuid)
          where chosen.backtest_id = ${test.id} and chosen.number = row.number`
        yield* CrashPoint.hit("backtest.beforeQueued")
      })

      /** Queues what may be queued, or ends a backtest of which nothing is left to do; answers whether anything moved. */
      const goOn = Effect.fnUntraced(function* (test: DueBacktest) {
        const live = yield* countLive(test.id)
        const spent = test.maxCostMicros === null ? 0 : yield* spentMicros(test.id)
        const isSpent = test.maxCostMicros !== null && spent >= Number(test.maxCostMicros)
        const events =
          live < backtestLimits.liveRuns ? yield* nextEvents(test, backtestLimits.liveRuns - live) : []
        if (events.length > 0 && !isSpent) {
          yield* queue(test, events)
          return true
        }
        if (live > 0) return false
        yield* end(test.id, "completed", events.length > 0 ? yield* spentSentence(test, spent) : null)
        return true
      })

      const spentSentence = Effect.fnUntraced(function* (test: DueBacktest, spent: number) {
        const { left } = yield* Effect.flatMap(
          sql<{ left: number }>`
            select count(*)::int as left from kb.backtest_events where backtest_id = ${test.id} and run_id is null`,
          onlyRow
        )
        return `It has spent ${tellDollars(spent)} of at most ${tellDollars(Number(test.maxCostMicros))}: ${left} ${left === 1 ? "event was" : "events were"} not run`
      })

      const turn = Effect.gen(function* () {
        let moved = 0
        for (const test of yield* due) {
          if (test.isAgentGone) {
            yield* end(test.id, "failed", "The agent was deleted")
            yield* cancelLive(test.id, "The agent was deleted")
            moved += 1
            continue
          }
          if (test.status === "queued") yield* begin(test)
          if (yield* goOn(test)) moved += 1
        }
        return moved
      }).pipe(orDie)

      const round = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_backtests() as project_id`
        )
        let moved = 0
        for (const { projectId } of projects)
          moved += yield* share("Backtester", projectId, database.inProject(projectId, turn))
        if (moved > 0) yield* CrashPoint.hit("backtest.afterCommit")
        return moved > 0
      }).pipe(Effect.withSpan("Backtester.round"))

      return Backtester.of({
        run: drive("Backtester", "backtests", untilWoken, round).pipe(
          Effect.provideService(WakeUps, wakeUps)
        ),
        round
      })
    })
  )
}

/**
 * Decides whether a caller may start runs of an agent now, and how many.
 *
 * The agent's row is locked before its runs are counted, so two callers cannot both take the last place. A run that an event triggers is
 * never refused here: it waits.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { KillSwitches } from "./kill-switches.ts"

/** Why an agent was not triggered; nothing was queued. */
export class TriggerRefused extends Schema.TaggedError<TriggerRefused>()("TriggerRefused", {
  reason: Schema.Literals(["agentDisabled", "stopped", "pendingRuns", "noReaction", "ofBacktest"]),
  detail: Schema.String
}) {}

export class Admission extends Context.Service<
  Admission,
  {
    /** Returns how many more runs of the agent may be queued or running, at least one, or fails. The count holds for this transaction. */
    readonly places: (agentId: AgentId) => Effect.Effect<number, TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Admission") {
  static readonly layer = Layer.effect(
    Admission,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const switches = yield* KillSwitches

      const places = Effect.fn("Admission.places")(function* (agentId: AgentId) {
        const { projectId } = yield* ProjectTransaction
        const stop = yield* switches.find
        if (stop)
          return yield* refuse(
            "stopped",
            `All agents of this ${stop.scope} are stopped by ${stop.stoppedBy}: ${stop.reason}`
          )
        // One round trip for both: other callers wait for this row as long as it is locked.
        const [[agent], [live]] = yield* database.together(
          sql<{ name: string; enabled: boolean; maxPendingRuns: number }>`
            select name, enabled, max_pending_runs from kb.agents
            where id = any(${inTurn(sql, "agent", sql`select ${agentId}::uuid`, "alone")}) and project_id = ${projectId}
              and deleted_at is null for no key update`,
          sql<{ count: number }>`
            select count(*)::int as count from (
              select 1 from kb.agent_runs where agent_id = ${agentId} and status in ('queued', 'running') and backtest_id is null
              limit coalesce((select max_pending_runs from kb.agents where id = ${agentId}), 0)) run`
        )
        if (agent?.enabled !== true)
          return yield* refuse(
            "agentDisabled",
            agent ? `The agent ${agent.name} is disabled: enable it first` : "The agent is deleted"
          )
        const free = agent.maxPendingRuns - (live?.count ?? 0)
        if (free > 0) return free
        return yield* refuse(
          "pendingRuns",
          `The agent ${agent.name} has ${agent.maxPendingRuns === 1 ? "a run that waits or works" : `${agent.maxPendingRuns} runs that wait or work`}, which is as many as it may have: try again later`
        )
      }, orDie)

      return Admission.of({ places })
    })
  )
}

/** Refuses to let an agent handle an event when its trigger is not an event. */
export const noReaction = ({ name, triggerType }: Pick<Agent, "name" | "triggerType">) =>
  refuse("noReaction", `The agent ${name} does not react to events: its trigger is ${triggerType}`)

const refuse = (reason: TriggerRefused["reason"], detail: string) =>
  Effect.fail(new TriggerRefused({ reason, detail }))

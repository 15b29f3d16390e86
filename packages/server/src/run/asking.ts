/**
 * Whether a run may ask its model once more, in one question.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Each request costs money and leads to more, so before each it is asked whether
 * the attempt still holds the run, whether its agent may still act, and whether
 * its chain has anything left to spend. Nothing is locked: whoever takes the run
 * away a moment later is found out when the answer is written.
 */
import { findSpentBudget } from "@tropism/domain/chain"
import { defineSettings, type ProjectSettingsPatch } from "@tropism/domain/project-settings"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../database/database.ts"
import { toUse, type UseRow } from "./chain-budget.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { RunHalted, RunNotInState } from "./holding.ts"
import { isStopped } from "./kill-switches.ts"

interface Outlook extends UseRow {
  readonly agentName: string
  readonly isEnabled: boolean
  readonly isDeleted: boolean
  readonly settings: ProjectSettingsPatch
}

export const makeAsking = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database

  const mayAsk = Effect.fn("Runs.mayAsk")(function* (run: ClaimedRun) {
    const [outlook] = yield* database.ask(
      run.projectId,
      sql<Outlook>`
        select agent.name as agent_name, agent.enabled as is_enabled, agent.deleted_at is not null as is_deleted, project.settings,
          coalesce(budget.runs, 0) as runs, coalesce(budget.input_tokens, 0) as input_tokens,
          coalesce(budget.output_tokens, 0) as output_tokens, coalesce(budget.cost_micros, 0) as cost_micros
        from kb.agent_runs run
        join kb.agents agent on agent.id = run.agent_id
        join kb.projects project on project.id = run.project_id
        left join lateral (
          select * from kb.budgets where project_id = run.project_id and scope = 'chain' and scope_id = run.root_event_id limit 1
        ) budget on true
        where run.id = ${run.id} and run.attempt_token = ${run.attemptToken} and run.status = 'running' and not ${isStopped(sql)}`
    )
    if (!outlook) return yield* new RunNotInState({ runId: run.id })
    if (!outlook.isEnabled || outlook.isDeleted) {
      const fate = outlook.isDeleted ? "deleted" : "disabled"
      return yield* new RunHalted({ runId: run.id, detail: `The agent ${outlook.agentName} was ${fate}` })
    }
    return findSpentBudget(toUse(outlook), defineSettings(outlook.settings).chainLimits)
  })

  return { mayAsk }
})

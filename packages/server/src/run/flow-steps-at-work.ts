/**
 * Tells which step of a run's flow a request to a model was for.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The log says where each step begins, and a request names the last event that
 * the model was shown. A context may be older than the run: steps that began
 * before the run was made are not its own.
 */
import type { ProjectId, RunId } from "@tropism/domain/ids"
import type { FlowStepAtWork } from "@tropism/domain/model-call"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { ModelCallRow } from "./model-call-rows.ts"

/** What step was at work behind an event of the log. */
export type FlowStepBehind = (afterEvent: number) => FlowStepAtWork | null

interface BegunRow extends FlowStepAtWork {
  readonly number: number
}

/** The steps at work in some calls of one run, in one question. */
export const makeFlowSteps = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (projectId: ProjectId, runId: RunId, calls: ReadonlyArray<ModelCallRow>) {
    const [first] = calls
    if (first === undefined) return noStep
    const last = Math.max(...calls.map(({ afterEvent }) => afterEvent))
    const begun = yield* sql<BegunRow>`
      select event.number, event.payload ->> 'step' as name, (event.payload ->> 'iteration')::int as iteration
      from kb.context_events event join kb.agent_runs run on run.project_id = event.project_id and run.id = ${runId}
      where event.project_id = ${projectId} and event.context_name = ${first.contextName} and event.number <= ${last}
        and event.type = 'FlowStepStartedEvent' and event.created_at >= run.created_at
      order by event.number`
    const behind: FlowStepBehind = (afterEvent) => {
      const row = begun.findLast(({ number }) => number <= afterEvent)
      return row === undefined ? null : { name: row.name, iteration: row.iteration }
    }
    return behind
  })

const noStep: FlowStepBehind = () => null

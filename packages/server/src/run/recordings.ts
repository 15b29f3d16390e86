/**
 * What the model of an earlier run answered, for a run that is answered the same.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The log is the record: nothing else is kept for it. One answer is read at a
 * time, so a long record costs no memory; a run of another project does not
 * exist here, and one in somebody's own context only for runs in theirs.
 */
import { type ProjectId, RunId } from "@tropism/domain/ids"
import type { ContextName, RequestedToolCall } from "@tropism/domain/context-event"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../database/database.ts"
import type { ReadRecord } from "../model/model-request.ts"

interface AnswerRow {
  readonly text: string
  readonly toolCalls: ReadonlyArray<typeof RequestedToolCall.Type>
}

const isRunId = Schema.is(RunId)

/** Reads the records of a project. */
export const makeRecordings = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database

  /** For a run that works in a context, or for nobody in particular. */
  return (projectId: ProjectId, asking: ContextName | null): ReadRecord =>
    Effect.fn("recordings.read")(function* (runId, step) {
      if (!isRunId(runId)) return null
      const [row] = yield* database.ask(
        projectId,
        sql<AnswerRow>`
          select event.payload->>'content' as text, event.payload->'toolCalls' as tool_calls, event.payload->>'finishReason' as finish_reason
          from kb.agent_runs run
          join kb.context_events event on event.project_id = run.project_id and event.context_name = run.context_name
          join kb.contexts origin on origin.project_id = run.project_id and origin.name = run.context_name
          where run.id = ${runId}
            and (origin.owner is null or origin.owner = (select owner from kb.contexts where project_id = ${projectId} and name = ${asking}))
            and event.type = 'AssistantMessageEvent' and event.payload->>'runId' = run.id::text
          order by event.number limit 1 offset ${step}`
      )
      return row ?? null
    })
})

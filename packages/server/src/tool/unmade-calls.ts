/**
 * The records of calls that are answered without being made.
 *
 * The decider refuses a call, or a run ends while a call is pending: then the
 * event that tells the model so and the record are one statement. A call that
 * was made and whose outcome nobody waits for any more keeps its record, which
 * says so. A call whose id no record can hold, in a log of an earlier version, has
 * the event alone.
 */
import type { NewEvent } from "@tropism/domain/context-event"
import { madeCall } from "@tropism/domain/defined-tool"
import type { RunId } from "@tropism/domain/ids"
import type { ToolCall } from "@tropism/domain/message"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Terms } from "../agent/appending.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"

type FailedCall = Extract<NewEvent, { readonly type: "ToolCallFailedEvent" }>

export const makeUnmadeCalls = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** The records of the pending calls which these events answer with a failure. */
  const unmade = Effect.fnUntraced(function* (
    pending: ReadonlyArray<ToolCall>,
    events: ReadonlyArray<NewEvent>
  ) {
    const answers = events.filter(
      (event): event is FailedCall => event.type === "ToolCallFailedEvent" && isRecorded(event.callId)
    )
    const calls = yield* Effect.forEach(answers, ({ callId, error, tool }) => {
      const asked = pending.find((call) => call.id === callId)
      const made = asked ? madeCall(asked) : { name: tool, arguments: {} }
      return Effect.map(ids.next, (id) => ({
        id,
        call: callId,
        tool: made.name,
        arguments: made.arguments,
        result: error
      }))
    })
    return calls.length === 0 ? undefined : calls
  })

  /** The part of an append that records them. */
  const recordingUnmade = sql`recorded as (
    insert into kb.tool_calls (id, project_id, run_id, agent_id, user_id, context_name, call_id, tool, arguments, status, decision, result, completed_at)
    select call.id, run.project_id, run.id, run.agent_id, run.user_id, run.context_name, call.call, call.tool, call.arguments, 'refused', 'refuse',
      call.result, now()
    from appended
    cross join lateral jsonb_to_recordset(appended.unmade) as call(id uuid, call text, tool text, arguments jsonb, result jsonb)
    join kb.agent_runs run on run.id = appended.run
    where appended.unmade is not null
    on conflict (run_id, call_id) do update set result = excluded.result, completed_at = now(),
      status = case when excluded.result ->> 'reason' = 'unknownOutcome' then 'unknown' else 'abandoned' end
      where tool_calls.status in ('started', 'abandoned'))`

  /** How an append that is made alone records them. */
  const recording = (run: RunId, pending: ReadonlyArray<ToolCall>, events: ReadonlyArray<NewEvent>) =>
    Effect.map(unmade(pending, events), (calls): Pick<Terms, "fields" | "alongside"> =>
      calls === undefined ? {} : { fields: { run, unmade: calls }, alongside: [recordingUnmade] }
    )

  return { unmade, recording, recordingUnmade }
})

const isRecorded = (callId: string): boolean => Buffer.byteLength(callId) <= toolLimits.callIdMaxBytes

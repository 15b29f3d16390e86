/**
 * Faults of client tools: a call with two outcomes, an answer that is lost or was taken twice, a call that waits for ever.
 */
import type { Plant } from "./plant.ts"

export const clientPlants: ReadonlyArray<Plant> = [
  {
    checker: "callsEndOnce",
    fault: "a call of a client tool has two outcomes",
    sql: [
      `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
        select project_id, name, 10000 + n, 'ToolCallCompletedEvent', '{"callId": "twice", "tool": "pick_colour", "result": 1}'::jsonb, null, false, now()
        from kb.contexts, generate_series(1, 2) n where project_id = $1 and name = 'easel'`
    ]
  },
  {
    checker: "answersKept",
    fault: "an answer that was acknowledged is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({
      answeredCalls: [...acknowledged.answeredCalls, { callId: "lost", client: "pablo" }]
    })
  },
  {
    checker: "noCallLeft",
    fault: "a call waits for a client although its run has ended",
    sql: [
      `update kb.tool_calls set tool = 'pick_colour', status = 'started' where id = (
        select call.id from kb.tool_calls call join kb.agent_runs run on run.id = call.run_id
        where call.project_id = $1 and run.completed_at is not null order by call.id limit 1)`
    ]
  }
]

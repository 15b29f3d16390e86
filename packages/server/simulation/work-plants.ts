/**
 * Faults in the work of runs: at least one for each checker of `check-work.ts`.
 */
import type { Plant } from "./plant.ts"

const overspent = (scope: string): Plant => ({
  checker: "spendingCounted",
  fault: `a token was counted that no step of the ${scope} spent`,
  sql: [
    `update kb.budgets set output_tokens = output_tokens + 1 where project_id = $1 and scope = '${scope}'`
  ]
})

const waiting = (reason: string): Plant => ({
  checker: "waitsKnown",
  fault: `a run waits for its ${reason} and there is none`,
  sql: [
    `update kb.agent_runs set status = 'paused', pause_reason = '${reason}' where project_id = $1 and status = 'completed' and trigger->>'type' <> 'context'`
  ]
})

/** Makes a run the child of another by one of that other's calls. */
const adopted = `
  update kb.agent_runs child set parent_run_id = call.run_id, ancestors = array[call.run_id], spawned_by = call.id
  from (select id, run_id from kb.tool_calls where project_id = $1 and status = 'completed' order by id limit 1) call
  where child.id = (select id from kb.agent_runs where project_id = $1 and status = 'completed' and id <> call.run_id order by id limit 1)`

const tried = (fault: string, values: string): Plant => ({
  checker: "attemptsBounded",
  fault,
  sql: [`update kb.agent_runs set ${values} where project_id = $1 and status = 'completed'`]
})

const rewritten = (fault: string, type: string, values: string): Plant => ({
  checker: "logsReplay",
  fault,
  sql: [`update kb.context_events set ${values} where project_id = $1 and type = '${type}'`]
})

export const workPlants: ReadonlyArray<Plant> = [
  rewritten(
    "a turn has another number",
    "AgentTurnStartedEvent",
    `payload = jsonb_set(payload, '{turnNumber}', '7')`
  ),
  rewritten(
    "a call was begun with other arguments",
    "ToolCallStartedEvent",
    `payload = jsonb_set(payload, '{arguments}', '{"planted": 1}')`
  ),
  rewritten(
    "an answer hangs on another event",
    "AssistantMessageEvent",
    `parent_event_id = context_name || ':1'`
  ),
  tried("a run was tried a fourth time at one step", "attempt = 9, attempts_before_step = 5"),
  tried("a run was tried once more than it may be", "attempt = 21, attempts_before_step = 20"),
  tried(
    "a run was given up when fewer had died at its step",
    "attempt = 5, attempts_before_step = 3, error_message = 'The worker died 3 times during one step of this run'"
  ),
  overspent("chain"),
  overspent("run"),
  overspent("agent"),
  {
    checker: "spendingCounted",
    fault: "what a run spent was not counted for the run that it worked for",
    sql: [adopted]
  },
  {
    checker: "budgetsKept",
    fault: "a run asked again after its budget was spent",
    sql: [`update kb.agent_runs set limits = '{"maxTokens": 1}' where project_id = $1 and step_count > 1`]
  },
  waiting("question"),
  waiting("subAgents"),
  {
    checker: "deadlinesHold",
    fault: "a run was at work long after its deadline",
    sql: [
      `update kb.context_events set created_at = created_at + interval '1 hour' where project_id = $1 and type = 'SessionEndedEvent'`
    ]
  },
  {
    checker: "familiesEnd",
    fault: "a run lives on below one that was cancelled",
    sql: [
      adopted,
      `update kb.agent_runs parent set status = 'cancelled' from kb.agent_runs child
        where child.project_id = $1 and parent.id = child.parent_run_id`,
      `update kb.agent_runs set status = 'paused', pause_reason = 'timeout' where project_id = $1 and parent_run_id is not null`
    ]
  },
  {
    checker: "childrenReported",
    fault: "a run that another waits for is over, and nobody said so",
    sql: [
      adopted,
      `update kb.tool_calls set status = 'started' where id in (select spawned_by from kb.agent_runs where project_id = $1)`
    ]
  },
  {
    checker: "childrenReported",
    fault: "a run is reported twice",
    sql: [
      adopted,
      `insert into kb.context_events
        select event.project_id, event.context_name, 999, event.type, event.payload, event.parent_event_id, false, event.created_at
        from kb.context_events event
        join kb.tool_calls call on call.context_name = event.context_name and call.call_id = event.payload->>'callId'
        join kb.agent_runs child on child.spawned_by = call.id
        where child.project_id = $1 and event.project_id = $1 and event.type = 'ToolCallCompletedEvent'`
    ]
  },
  {
    checker: "flowsGoThrough",
    fault: "a flow began with another than its first step",
    sql: [
      `update kb.context_events set payload = jsonb_set(payload, '{index}', '7') where project_id = $1 and type = 'FlowStepStartedEvent'`
    ]
  },
  {
    checker: "flowsGoThrough",
    fault: "a flow completed and had left out a step",
    sql: [
      `update kb.context_events set type = 'PlantedEvent' where project_id = $1 and type = 'FlowStepStartedEvent'`
    ]
  }
]

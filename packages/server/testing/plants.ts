/**
 * Faults in the rows that a simulation left: at least one for each checker.
 */
import type { AgentId } from "@tropism/domain/ids"
import type { Plant } from "../simulation/plant.ts"
import { chatPlants } from "../simulation/chat-plants.ts"
import { clientPlants } from "../simulation/client-plants.ts"
import { filePlants } from "../simulation/file-plants.ts"
import { forkPlants } from "../simulation/fork-plants.ts"
import { guardPlants } from "../simulation/guard-plants.ts"
import { memoryPlants } from "../simulation/memory-plants.ts"
import { radioPlants } from "../simulation/radio-plants.ts"
import { shopPlants } from "../simulation/shop-plants.ts"
import { trustPlants } from "../simulation/trust-plants.ts"
import { todoPlants } from "../simulation/todo-plants.ts"
import { workPlants } from "../simulation/work-plants.ts"
import { backtestPlants } from "./backtest-plants.ts"
import { deliveryPlants } from "./delivery-plants.ts"
import { keyPlants } from "./key-plants.ts"
import { reviewPlants } from "./review-plants.ts"
import { rulePlants } from "./rule-plants.ts"
import { undoPlants } from "./undo-plants.ts"

const agentsEvent = `select id from kb.graph_events where project_id = $1 and actor_type = 'agent' limit 1`
const logEvent = (type: string) =>
  `delete from kb.context_events where (project_id, context_name, number) in
    (select project_id, context_name, number from kb.context_events where project_id = $1 and type = '${type}' limit 1)`

/** At least one for each checker; each is tried on one simulation after another until it can spoil one. */
export const plants: ReadonlyArray<Plant> = [
  ...workPlants,
  ...trustPlants,
  ...reviewPlants,
  ...undoPlants,
  ...backtestPlants,
  ...chatPlants,
  ...clientPlants,
  ...keyPlants,
  ...filePlants,
  ...forkPlants,
  ...memoryPlants,
  ...radioPlants,
  ...deliveryPlants,
  ...shopPlants,
  ...guardPlants,
  {
    checker: "chainsKept",
    fault: "a run stands in a chain of which none of its events is",
    sql: [
      `update kb.agent_runs set root_event_id = gen_random_uuid() where id =
        (select run_id from kb.agent_processing_log where project_id = $1 and run_id is not null order by id limit 1)`
    ]
  },
  {
    checker: "eventPerChange",
    fault: "an event says another state than its version",
    sql: [
      `update kb.graph_events set snapshot = jsonb_set(snapshot, '{properties,planted}', '1') where project_id = $1 and entity_type = 'graphObject'`
    ]
  },
  {
    checker: "historyFolds",
    fault: "an object was written past its history",
    sql: [`update kb.graph_objects set properties = properties || '{"planted": 1}' where project_id = $1`]
  },
  {
    checker: "historyFolds",
    fault: "a relationship was written past its history",
    sql: [
      `update kb.graph_relationships set properties = properties || '{"planted": 1}' where project_id = $1`
    ]
  },
  {
    checker: "changesTold",
    fault: "an event tells the wrong properties",
    sql: [
      `update kb.graph_events set changed_properties = '{planted}' where project_id = $1 and type = 'updated'`
    ]
  },
  {
    checker: "settersKept",
    fault: "an object names another version as the one that set a property",
    sql: [
      `update kb.graph_objects set property_versions = (select jsonb_object_agg(name, version + 1) from jsonb_object_keys(properties) name)
        where project_id = $1 and properties <> '{}'`
    ]
  },
  {
    checker: "feedGapless",
    fault: "a place of the feed is left out",
    sql: [
      `update kb.graph_events set position = position + 1 where project_id = $1 and position = (select last_position from kb.feeds where project_id = $1)`
    ]
  },
  {
    checker: "feedGapless",
    fault: "an event was never dispatched",
    sql: [
      `update kb.graph_events set position = null where id in (select id from kb.graph_events where project_id = $1 limit 1)`
    ]
  },
  {
    checker: "acknowledgedKept",
    fault: "what a person was told was written is not there",
    sql: [
      `update kb.graph_events set entity_id = gen_random_uuid() where project_id = $1 and actor_type = 'user'`
    ]
  },
  {
    checker: "everyEventAnswered",
    fault: "a matching event has no entry",
    sql: [`delete from kb.agent_processing_log where project_id = $1`]
  },
  {
    checker: "everyEventAnswered",
    fault: "an agent was refused with no reason told",
    sql: [`update kb.graph_events set refusals = '[]' where project_id = $1 and refusals <> '[]'`]
  },
  {
    checker: "handledOnce",
    fault: "an object's version was handled twice",
    sql: [
      `insert into kb.agent_processing_log
        select (json_populate_record(entry, json_build_object('id', gen_random_uuid(), 'attempt', 2))).*
        from kb.agent_processing_log entry where project_id = $1 and status = 'completed' limit 1`
    ]
  },
  {
    checker: "handledOnce",
    fault: "an entry has the run of another event",
    sql: [
      `update kb.agent_runs set trigger = jsonb_set(trigger, '{events,0,id}', to_jsonb(gen_random_uuid())) where project_id = $1 and trigger->>'type' = 'reaction'`
    ]
  },
  {
    checker: "notWokenByItself",
    fault: "an agent was woken by its own change",
    sql: [
      `update kb.graph_events event set actor_type = 'agent', actor_id = entry.agent_id::text
        from kb.agent_processing_log entry where entry.event_id = event.id and event.project_id = $1`
    ]
  },
  {
    checker: "runsAtRest",
    fault: "a run is still running",
    sql: [
      `update kb.agent_runs set status = 'running' where project_id = $1 and trigger->>'type' <> 'context'`
    ]
  },
  {
    checker: "runsAtRest",
    fault: "an entry is completed though its run failed",
    sql: [
      `update kb.agent_runs set status = 'failed', error_message = 'planted' where project_id = $1 and status = 'completed' and trigger->>'type' = 'reaction'`
    ]
  },
  {
    checker: "chainsCounted",
    fault: "a chain counts a run too many",
    sql: [`update kb.budgets set runs = runs + 1 where project_id = $1`]
  },
  {
    checker: "chainsEnd",
    fault: "a chain went on below its cap",
    sql: [`update kb.agent_runs set depth = 50 where project_id = $1`]
  },
  {
    checker: "chainsEnd",
    fault: "a chain led to more runs than it may",
    sql: [`update kb.projects set settings = jsonb_set(settings, '{chainLimits,maxRuns}', '1') where id = $1`]
  },
  ...rulePlants,
  {
    checker: "restraintsObeyed",
    fault: "an agent wrote after it was disabled",
    sql: [],
    testimony: ({ events }) => ({
      restrained: events.flatMap(({ actorId, actorType }) =>
        actorType === "agent" && actorId !== null ? [{ agentId: actorId as AgentId, written: [] }] : []
      )
    })
  },
  {
    checker: "restraintsObeyed",
    fault: "an agent wrote while a kill switch was on",
    sql: [],
    testimony: ({ events }) => ({ halted: [{ before: [], after: events.map(({ id }) => id) }] })
  },
  {
    checker: "chainsLead",
    fault: "a change of an agent is not deeper than its cause",
    sql: [`update kb.graph_events set depth = 0 where id in (${agentsEvent})`]
  },
  {
    checker: "firedOnce",
    fault: "a schedule fired twice for one instant",
    sql: [
      `drop index kb.agent_runs_due`,
      `update kb.agent_runs set due_at = '2026-01-01' where agent_id = (select agent_id from kb.agent_runs where project_id = $1 group by agent_id having count(*) > 1 limit 1)`
    ]
  },
  {
    checker: "deletionsKept",
    fault: "an agent that was at work was not told that the object is gone",
    sql: [
      `update kb.agent_processing_log set event_type = 'deleted', status = 'skipped', completed_at = null where id = (
        select id from kb.agent_processing_log where project_id = $1 and status = 'completed' and entity_type = 'graphObject' limit 1)`
    ]
  },
  {
    checker: "deadLettersKept",
    fault: "what failed is neither tried again nor a dead letter",
    sql: [`update kb.agent_processing_log set dead_lettered_at = null where project_id = $1`]
  },
  {
    checker: "deadLettersKept",
    fault: "what a person cancelled is a dead letter",
    sql: [
      `update kb.agent_runs set status = 'cancelled', cancelled_by = 'ada' where id in (
        select run_id from kb.agent_processing_log where project_id = $1 and dead_lettered_at is not null)`
    ]
  },
  {
    checker: "deliveredOnce",
    fault: "a delivery is accepted as a run that it did not begin",
    sql: [
      `update kb.agent_runs set trigger = jsonb_set(trigger, '{delivery,id}', '"planted"') where project_id = $1 and trigger->>'type' = 'webhook'`
    ]
  },
  {
    checker: "callsAnswered",
    fault: "a call has no outcome in its log",
    sql: [logEvent("ToolCallCompletedEvent")]
  },
  {
    checker: "callsAnswered",
    fault: "a call has two outcomes in its log",
    sql: [
      `update kb.context_events set payload = payload || '{"callId": "call_1_0_0"}' where project_id = $1 and type = 'ToolCallCompletedEvent'`
    ]
  },
  {
    checker: "callsRecorded",
    fault: "a call is not on record",
    sql: [`delete from kb.tool_calls where project_id = $1`]
  },
  {
    checker: "callsRecorded",
    fault: "a record says another result",
    sql: [`update kb.tool_calls set result = '"planted"' where project_id = $1`]
  },
  {
    checker: "denialsRecorded",
    fault: "what was denied is not on record",
    sql: [`delete from kb.denials where project_id = $1`]
  },
  {
    checker: "effectsRecorded",
    fault: "a task has no call that suggested it",
    sql: [`update kb.tool_calls set decision = null where project_id = $1 and decision = 'suggest'`]
  },
  {
    checker: "effectsRecorded",
    fault: "a call had two effects",
    sql: [
      `update kb.tasks set tool_call_id = (select tool_call_id from kb.tasks where project_id = $1 order by number limit 1) where project_id = $1 and number = 2`
    ]
  },
  {
    checker: "suggestedOnly",
    fault: "an agent in suggest mode wrote without a task",
    sql: [
      `update kb.graph_events set task_id = null, approved_by = null where id in (${agentsEvent})`,
      `update kb.agent_versions set definition = jsonb_set(definition, '{executionMode}', '"suggest"') where project_id = $1`
    ]
  },
  {
    checker: "untrustedSuggested",
    fault: "what woke an agent that wrote by itself was untrusted",
    sql: [
      `update kb.graph_events set snapshot = snapshot || '{"untrusted": ["mood"]}' where project_id = $1 and actor_type = 'user'`
    ]
  },
  {
    checker: "untrustedSuggested",
    fault: "what an agent had read before it wrote was untrusted",
    sql: [
      `update kb.context_events set payload = jsonb_set(payload, '{result}', '{"untrusted": ["mood"]}') where project_id = $1 and type = 'ToolCallCompletedEvent'`
    ]
  },
  {
    checker: "marksFold",
    fault: "a mark was taken past the history",
    sql: [`update kb.graph_objects set untrusted = '{}' where project_id = $1`]
  },
  {
    checker: "suggestedOnly",
    fault: "the task behind an agent's write was rejected",
    sql: [`update kb.tasks set status = 'rejected' where project_id = $1 and outcome->>'change' = 'updated'`]
  },
  {
    checker: "decisionsApplied",
    fault: "a rejected task changed something",
    sql: [`update kb.tasks set status = 'rejected' where project_id = $1 and status = 'completed'`]
  },
  {
    checker: "decisionsApplied",
    fault: "an approved task changed nothing",
    sql: [`update kb.graph_events set task_id = null where project_id = $1 and task_id is not null`]
  },
  {
    checker: "decisionsKept",
    fault: "a decision is lost",
    sql: [`update kb.tasks set status = 'pending' where project_id = $1 and status <> 'pending'`]
  },
  {
    checker: "tasksNumbered",
    fault: "a task's number is left out",
    sql: [
      `update kb.tasks set number = number + 1 where project_id = $1 and number = (select max(number) from kb.tasks where project_id = $1)`
    ]
  },
  ...todoPlants,
  {
    checker: "logsContiguous",
    fault: "an event is missing in a log",
    sql: [logEvent("ToolCallStartedEvent")]
  },
  {
    checker: "logsContiguous",
    fault: "a log's head counts an event too many",
    sql: [`update kb.contexts set last_event_number = last_event_number + 1 where project_id = $1`]
  },
  {
    checker: "turnsEnd",
    fault: "a turn never ended",
    sql: [
      `update kb.context_events set type = 'PlantedEvent' where project_id = $1 and type = 'AgentTurnCompletedEvent'`
    ]
  },
  {
    checker: "turnsEnd",
    fault: "a turn ended twice",
    sql: [
      `update kb.context_events set type = 'AgentTurnInterruptedEvent', payload = '{"turnNumber": 1, "reason": "crash"}' where project_id = $1 and type = 'SessionEndedEvent'`
    ]
  },
  {
    checker: "sessionsPair",
    fault: "a session began inside another",
    sql: [
      `update kb.context_events set type = 'SessionStartedEvent' where project_id = $1 and type = 'SessionEndedEvent'`
    ]
  },
  {
    checker: "sessionsPair",
    fault: "a turn lies in no session",
    sql: [
      `update kb.context_events set type = 'PlantedEvent' where project_id = $1 and type = 'SessionStartedEvent'`
    ]
  },
  {
    checker: "logsFold",
    fault: "a run counts a step too many",
    sql: [`update kb.agent_runs set step_count = step_count + 1 where project_id = $1`]
  },
  {
    checker: "logsFold",
    fault: "a run reports what it never said",
    sql: [`update kb.agent_runs set summary = 'planted' where project_id = $1 and status = 'completed'`]
  },
  {
    checker: "logsFold",
    fault: "a run that was cancelled leaves out what it had said",
    sql: [
      `update kb.agent_runs set status = 'cancelled', summary = 'planted' where project_id = $1 and status = 'completed'`
    ]
  },
  {
    checker: "logsFold",
    fault: "a run reports tokens that nobody used",
    sql: [`update kb.agent_runs set usage = '{"inputTokens": 1, "outputTokens": 0}' where project_id = $1`]
  },
  {
    checker: "logsClosed",
    fault: "a session was left open",
    sql: [
      `update kb.context_events set type = 'PlantedEvent' where project_id = $1 and type = 'SessionEndedEvent'`
    ]
  },
  {
    checker: "logsClosed",
    fault: "a message has no answer",
    sql: [
      `insert into kb.context_events select project_id, context_name, 999, type, payload, parent_event_id, true, created_at
        from kb.context_events where project_id = $1 and type = 'UserMessageEvent' and context_name in
        (select context_name from kb.agent_runs where project_id = $1 and status = 'completed') limit 1`
    ]
  },
  {
    checker: "messagesKept",
    fault: "a message is lost",
    sql: [
      `update kb.context_events set payload = '{"content": "planted"}' where project_id = $1 and context_name = 'talk' and type = 'UserMessageEvent'`
    ]
  }
]

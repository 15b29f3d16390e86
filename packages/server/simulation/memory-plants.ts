/**
 * Faults of what agents remember: notes twice, notes that nobody took, words that are not found.
 */
import type { Plant } from "./plant.ts"

/** An event stands in its log once more, far behind. */
const onceMore = (type: string): string =>
  `insert into kb.context_events select project_id, context_name, number + 500, type, payload, parent_event_id, triggers_agent_turn, created_at
    from kb.context_events where project_id = $1 and type = '${type}' limit 1`

export const memoryPlants: ReadonlyArray<Plant> = [
  {
    checker: "notesTaken",
    fault: "notes were taken twice",
    sql: [onceMore("ContextNotedEvent")]
  },
  {
    checker: "notesTaken",
    fault: "a run completed and left the notes that were due",
    sql: [
      `update kb.context_events set type = 'PlantedEvent' where project_id = $1 and type = 'ContextNotedEvent'
        and exists (select from kb.agent_runs run where run.id = (payload ->> 'runId')::uuid and status = 'completed')`
    ]
  },
  {
    checker: "summariesAdvance",
    fault: "the same messages were summed up twice",
    sql: [onceMore("ContextSummarizedEvent")]
  },
  {
    checker: "passagesMirrorLogs",
    fault: "the words of a message were not kept",
    sql: [`delete from kb.passages where project_id = $1 and type = 'UserMessageEvent'`]
  },
  {
    checker: "passagesMirrorLogs",
    fault: "words are found that nobody said",
    sql: [
      `insert into kb.passages select project_id, agent_id, context_name, number + 500, type, created_at, words, owner
        from kb.passages where project_id = $1 and type = 'UserMessageEvent' limit 1`
    ]
  }
]

/**
 * Chains learn what they cost, projects what their chains may cost, and both
 * can be read by their root: what a root event led to is found through an index.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Only what somebody set; every default is said by the program.
  `alter table kb.projects add column settings jsonb not null default '{}'`,
  // Tokens of all model requests below the scope, and money in millionths of a dollar.
  `alter table kb.budgets
    add column input_tokens bigint not null default 0,
    add column output_tokens bigint not null default 0,
    add column cost_micros bigint not null default 0`,
  `create index graph_events_chain on kb.graph_events (project_id, root_event_id, id)`,
  `create index agent_runs_chain on kb.agent_runs (project_id, root_event_id, id)`,
  `create index tasks_chain on kb.tasks (project_id, root_event_id, id)`
]

/**
 * The newest run of a conversation is found by an index.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Only what people said began these: what reacts has a context of its own each time.
  `create index agent_runs_of_conversations on kb.agent_runs (project_id, context_name, id) where trigger_type = 'context'`
]

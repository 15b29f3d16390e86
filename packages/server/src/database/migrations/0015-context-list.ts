/**
 * Contexts are listed newest first, by an index.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index contexts_list on kb.contexts (project_id, created_at desc, name desc)`,
  `create index contexts_list_agent on kb.contexts (project_id, agent_id, created_at desc, name desc)`
]

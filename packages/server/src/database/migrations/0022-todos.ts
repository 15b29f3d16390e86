/**
 * Tasks are listed by whose they are: the project's, and the reader's own todos.
 *
 * Each list is read newest first from an index, in each state that is asked for.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `drop index kb.tasks_list`,
  `create index tasks_list on kb.tasks (project_id, owner, status, id) where deleted_at is null`,
  `create index tasks_list_type on kb.tasks (project_id, owner, type, status, id) where deleted_at is null`
]

/**
 * A rate limit counts runs from when they began, not from when they were queued:
 * the index that it counts through is by that instant.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index agent_runs_started on kb.agent_runs (agent_id, started_at) where trigger ->> 'type' = 'reaction'`,
  `drop index kb.agent_runs_begun`
]

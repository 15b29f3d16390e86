/**
 * What of the tokens that models read came from their providers' caches or went into them, and what of the others was thought.
 */

const counts = (type: string): string =>
  ["cached_input_tokens", "cache_write_tokens", "reasoning_tokens"]
    .map((column) => `add column ${column} ${type} not null default 0`)
    .join(", ")

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.budgets ${counts("bigint")}`,
  `alter table kb.model_calls ${counts("integer")}, add column cached_cost_micros bigint`,
  // What an agent has used of each model, over its last days.
  `create index model_calls_of_agents on kb.model_calls (project_id, agent_id, started_at)`
]

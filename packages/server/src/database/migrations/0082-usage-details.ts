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
  `alter table kb.model_calls ${counts("integer")}`
]

/**
 * How much of what models read came from their providers' caches, beside what they read in all.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.budgets add column cached_input_tokens bigint not null default 0`,
  `alter table kb.model_calls add column cached_input_tokens integer not null default 0`
]

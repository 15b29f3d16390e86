/**
 * Agents learn the whole of their definition: every field of a reaction, what a
 * schedule does about missed time, and the safeguards. Rows that are there get
 * each field's default.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agents
    add column catch_up text not null default 'one' check (catch_up in ('none', 'one', 'all')),
    add column overlap_policy text not null default 'skip' check (overlap_policy in ('skip', 'allow')),
    add column retry_policy jsonb,
    add column max_pending_runs integer not null default 1000,
    add column disable_after_failures integer not null default 10,
    drop constraint agents_trigger_type_check,
    add constraint agents_trigger_type_check check (trigger_type in ('reaction', 'schedule', 'manual', 'webhook'))`,
  `update kb.agents set reaction_config = jsonb_build_object(
      'relationshipTypes', null, 'where', null, 'debounceMs', 0, 'maxWaitMs', null, 'batchSize', 1, 'rateLimit', null,
      'maxConcurrency', null) || reaction_config
    where reaction_config is not null`
]

/**
 * A context may begin as a fork of another: it shares the log up to an event, without a copy of it.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.contexts
    add column forked_from text,
    -- The number of the last event that it shares; its own begin behind it.
    add column forked_at integer,
    add constraint contexts_fork foreign key (project_id, forked_from) references kb.contexts (project_id, name),
    add constraint contexts_fork_whole check ((forked_from is null) = (forked_at is null))`
]

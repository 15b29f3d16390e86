/**
 * A run knows how many of its attempts went before the last step that was kept,
 * so that those which die are counted anew behind each step.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_runs add column attempts_before_step integer not null default 0`
]

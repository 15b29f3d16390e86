/**
 * A run that a person cancelled says who it was. Of earlier ones nobody knows.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [`alter table kb.agent_runs add column cancelled_by text`]

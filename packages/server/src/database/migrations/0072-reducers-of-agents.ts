/**
 * How much of a log an agent's model is shown, where its definition says it; null is the default.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [`alter table kb.agents add column reducer jsonb`]

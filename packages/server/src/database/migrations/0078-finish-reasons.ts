/**
 * Why the provider ended the model's last answer of a run.
 */
export const statements: ReadonlyArray<string> = [`alter table kb.agent_runs add column finish_reason text`]

/**
 * What a model answered: why the last answer of a run ended, and what was put right in the arguments of a tool call.
 */

export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_runs add column finish_reason text`,
  `alter table kb.tool_calls add column coerced jsonb`
]

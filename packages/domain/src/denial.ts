/**
 * What somebody may not do, and tried: who, what and why.
 *
 * A denial is of a right and not of a mistake. It is kept whether or not anybody
 * looked at the run in which it happened.
 */
import { Schema } from "effect"
import { Change } from "./change.ts"
import { AgentId, DenialId, RunId, TaskId, Timestamp, ToolCallId, UserId } from "./ids.ts"

/**
 * Through which door it was tried.
 *
 * **Details** `chat`: a run that answers in a context. `subAgent`: a run that another spawned. `run`: any other.
 * `approval`: a person's decision about a suggestion. `mcp`: a tool that a person calls for themselves.
 */
export const Door = Schema.Literals(["run", "chat", "subAgent", "approval", "mcp"])
export type Door = typeof Door.Type

/**
 * What was missing.
 *
 * **Details** `notPermitted` and `agentDisabled` are the agent's rights, `untrusted` what its run had read, `forbidden` the
 * person's. `tooManySuggestions`:
 * people must decide first. `rejectedBefore`: a person has decided already.
 */
export const DenialReason = Schema.Literals([
  "notPermitted",
  "untrusted",
  "agentDisabled",
  "forbidden",
  "tooManySuggestions",
  "rejectedBefore"
])
export type DenialReason = typeof DenialReason.Type

export const Denial = Schema.Struct({
  id: DenialId,
  at: Timestamp,
  door: Door,
  /** Whose agent's it was; null, with its run, where a person called for themselves. */
  agentId: Schema.NullOr(AgentId),
  agentName: Schema.NullOr(Schema.String),
  runId: Schema.NullOr(RunId),
  /** Who approved or called, or in whose run it was; null where nobody began the run. */
  userId: Schema.NullOr(UserId),
  /** The suggestion that was not approved. */
  taskId: Schema.NullOr(TaskId),
  toolCallId: Schema.NullOr(ToolCallId),
  /** The tool that was asked for, or by which the change was suggested. */
  tool: Schema.String,
  /** What it would have done to the graph; null where it would have done nothing, or was not understood. */
  change: Schema.NullOr(Change),
  reason: DenialReason,
  detail: Schema.String
}).annotate({ identifier: "Denial" })
export type Denial = typeof Denial.Type

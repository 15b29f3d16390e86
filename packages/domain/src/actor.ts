/**
 * Who caused a change, and through what.
 *
 * Every change has an actor: there is no anonymous write, because an agent's
 * self-trigger rule is judged on the actor of the event (S000-R11). A change
 * that a person approved keeps the agent as its actor and names the person in
 * `approvedBy`, so the agent is not woken by it.
 */
import { Schema } from "effect"
import { AgentId, GraphEventId, RunId, TaskId, ToolCallId, UserId } from "./ids.ts"

export const ActorType = Schema.Literals(["user", "agent", "system"])
export type ActorType = typeof ActorType.Type

/** The one to whom a change is attributed; `actorId` is a user's id, an agent's id, or null for the system. */
export const Actor = Schema.Struct({
  actorType: ActorType,
  actorId: Schema.NullOr(Schema.String)
})
export type Actor = typeof Actor.Type

/** What led to a change: the run, tool call or approved task, and the chain it belongs to. */
export const Cause = Schema.Struct({
  runId: Schema.NullOr(RunId),
  toolCallId: Schema.NullOr(ToolCallId),
  taskId: Schema.NullOr(TaskId),
  approvedBy: Schema.NullOr(UserId),
  /** The first event of the chain; null when this change begins one. */
  rootEventId: Schema.NullOr(GraphEventId),
  /** How many agents stand between the root event and this change; 0 for a person's own. */
  depth: Schema.Int,
  /** The agents whose changes this one takes back; absent is none. */
  undoes: Schema.optionalKey(Schema.Array(AgentId))
})
export type Cause = typeof Cause.Type

/** The cause of a change that somebody made directly. */
export const direct: Cause = {
  runId: null,
  toolCallId: null,
  taskId: null,
  approvedBy: null,
  rootEventId: null,
  depth: 0
}

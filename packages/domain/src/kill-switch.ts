/**
 * What stops all agents of a project, or of the whole server, at once.
 *
 * While a switch is on no run begins and no agent writes; events are recorded
 * and wait, nobody is told of them, and no foreign server is asked for its own.
 * Turning it off lets everything go on where it stopped.
 */
import { Schema } from "effect"
import { Timestamp, UserId } from "./ids.ts"

export const StopReason = Schema.String.check(
  Schema.isBetweenLength(1, 500),
  Schema.isPattern(/\S/, { message: "Say why: a reason must not be blank" })
)

/** A switch that is on: which, why, by whom and since when. */
export const Stop = Schema.Struct({
  scope: Schema.Literals(["project", "server"]),
  reason: Schema.String,
  stoppedBy: UserId,
  stoppedAt: Timestamp
}).annotate({ identifier: "Stop" })
export type Stop = typeof Stop.Type

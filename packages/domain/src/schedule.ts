/**
 * What a schedule does about time that was missed and work that is not done.
 *
 * The cron expression and its zone stand in the agent's definition; when it
 * fires is computed where the clock is, in the server.
 */
import { Schema } from "effect"
import { Timestamp } from "./ids.ts"

/** Missed instants after downtime: none of them fires, one fires for all of them, or each fires. */
export const CatchUp = Schema.Literals(["none", "one", "all"])
export type CatchUp = typeof CatchUp.Type

/** When the earlier run has not ended: the instant is skipped with its reason, or runs beside it. */
export const OverlapPolicy = Schema.Literals(["skip", "allow"])
export type OverlapPolicy = typeof OverlapPolicy.Type

/** When a schedule fires next, as its zone's clock shows it. */
export const SchedulePreview = Schema.Struct({
  cronSchedule: Schema.String,
  timezone: Schema.String,
  catchUp: CatchUp,
  overlapPolicy: OverlapPolicy,
  /** Whether it fires at all: an agent that is disabled, or has another trigger, keeps its expression and does not. */
  active: Schema.Boolean,
  /** The next instants, the soonest first, with the local time and its offset from UTC. */
  fires: Schema.Array(Schema.Struct({ at: Timestamp, localTime: Schema.String })),
  /** Missed instants that wait for the earlier run to end. */
  waiting: Schema.NullOr(Schema.Struct({ from: Timestamp, until: Timestamp }))
}).annotate({ identifier: "SchedulePreview" })
export type SchedulePreview = typeof SchedulePreview.Type

/**
 * What a schedule does about time that was missed and work that is not done.
 *
 * The cron expression and its zone stand in the agent's definition; when it
 * fires is computed where the clock is, in the server.
 */
import { Schema } from "effect"

/** Missed instants after downtime: none of them fires, one fires for all of them, or each fires. */
export const CatchUp = Schema.Literals(["none", "one", "all"])
export type CatchUp = typeof CatchUp.Type

/** When the earlier run has not ended: the instant is skipped with its reason, or runs beside it. */
export const OverlapPolicy = Schema.Literals(["skip", "allow"])
export type OverlapPolicy = typeof OverlapPolicy.Type

/**
 * How far a run has come, as its context's log tells it.
 */
import { Option } from "effect"
import type { SoftStopReason } from "./context-event.ts"
import type { Unfinished } from "./unfinished.ts"
import { noUsage, type Usage } from "./run.ts"

/** What the run that wrote last has done and used. */
export interface RunProgress {
  readonly id: string
  readonly steps: number
  /** Steps that no longer count towards the limit: those before the run was paused and resumed. */
  readonly stepsBeforeResume: number
  readonly usage: Usage
  /** It was asked to stop, and no turn has begun since it was paused for that. */
  readonly softStop: Option.Option<SoftStop>
  /** A limit has ended its turn, and no turn has begun since. */
  readonly pausedFor: Option.Option<"stepLimit" | "timeout" | "budget">
  /** Its last answer is not whole. */
  readonly unfinished: Option.Option<Unfinished>
}

/** A run was asked to stop: why, when, and after how many steps. */
export interface SoftStop {
  readonly reason: SoftStopReason
  readonly at: string
  readonly steps: number
}

export const newRun = (id: string): RunProgress => ({
  id,
  steps: 0,
  stepsBeforeResume: 0,
  usage: noUsage,
  softStop: Option.none(),
  pausedFor: Option.none(),
  unfinished: Option.none()
})

/**
 * Time that passes: leases run out, entries grow old, schedules fall due.
 *
 * A leap is time in which nobody came to do anything, as when a whole machine
 * stood still: every heartbeat is late. Time that only passes gives everybody
 * their turn in between, so that only the dead miss their heartbeats.
 */
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import type { WorldClock } from "./world-clock.ts"

/** Long enough for a lease to run out. */
export const leaseLapseMs = runLimits.leaseMs + 1_000

/** Far longer than an entry may look stuck. */
export const nightMs = 2 * runLimits.stuckAfterMs

/** Lets time pass in which the living have their turns. */
export const pass = Effect.fnUntraced(function* (clock: WorldClock, ms: number) {
  const step = runLimits.heartbeatIntervalMs - 1_000
  for (let left = ms; left > 0; left -= step) {
    clock.leap(Math.min(step, left))
    yield* Effect.sleep(1)
  }
})

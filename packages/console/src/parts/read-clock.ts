/**
 * What time it is, for what somebody sees or presses now.
 */
import { Clock, Effect } from "effect"

/** Milliseconds since 1970. */
export const readClock = (): number => Effect.runSync(Clock.currentTimeMillis)

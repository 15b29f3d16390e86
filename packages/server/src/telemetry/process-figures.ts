/**
 * How the program itself fares: its memory, and whether its event loop keeps up.
 *
 * The lag is the longest since it was told last, so one long pause is seen by
 * whoever scrapes next, and by nobody after that.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Metric } from "effect"
import { telemetryLimits } from "../limits.ts"

const resident = Metric.gauge("process_resident_memory_bytes", {
  description: "Memory that this program holds, without its database."
})
const lag = Metric.gauge("tropism_event_loop_lag_seconds", {
  description: "The longest pause of this program's event loop since it was told last."
})

const delay = monitorEventLoopDelay({ resolution: telemetryLimits.lagResolutionMs })

/** Tells the figures; the lag is watched from the first scrape on. */
export const tellProcess: Effect.Effect<void> = Effect.suspend(() => {
  const lagSeconds = delay.enable() ? 0 : delay.max / 1e9
  delay.reset()
  return Effect.andThen(Metric.update(resident, process.memoryUsage.rss()), Metric.update(lag, lagSeconds))
})

/**
 * Keeps timers of the wall's clock from holding what has ended.
 *
 * A simulation lives in a time of its own, but a library that a server is made
 * of may bound by the wall's what it does, as the SDK of MCP bounds a call by a
 * day. A call of a killed server is never answered, so its timer would hold all
 * of that server, and of its seed, until the process ends. No timer that long
 * ever rings here, so none is kept. A shorter one rings, and holds nothing after that.
 */
import { Effect } from "effect"
import { toolLimits } from "../src/limits.ts"

/** Timers of so long, or of longer, are not kept: the product's longest, which is far more than any seed takes. */
export const longTimerMs = toolLimits.sdkTimeoutMs

/** Keeps no long timer that is set from now on, until the scope ends. */
export const leaveOutLongTimers = Effect.acquireRelease(
  Effect.sync(() => {
    const { setTimeout } = globalThis
    const set = (run: (...given: Array<unknown>) => void, ms?: number, ...given: Array<unknown>) => {
      const timer = setTimeout(run, ms, ...given)
      if (ms !== undefined && ms >= longTimerMs) clearTimeout(timer)
      return timer
    }
    globalThis.setTimeout = Object.assign(set, setTimeout)
    return setTimeout
  }),
  (setTimeout) => Effect.sync(() => void (globalThis.setTimeout = setTimeout))
)

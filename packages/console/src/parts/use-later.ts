/**
 * Does the last thing asked for, once nothing was asked for a moment.
 */
import { Effect, Fiber } from "effect"
import { useCallback, useEffect, useRef } from "react"

/** Each call takes the place of the one before that has not begun; none begins after the component is gone. */
export const useLater = (pauseMs: number): ((act: () => void) => void) => {
  const waiting = useRef<Fiber.Fiber<void>>(undefined)
  const drop = useCallback(() => {
    if (waiting.current !== undefined) Effect.runFork(Fiber.interrupt(waiting.current))
    waiting.current = undefined
  }, [])
  useEffect(() => drop, [drop])
  return useCallback(
    (act) => {
      drop()
      waiting.current = Effect.runFork(Effect.delay(Effect.sync(act), pauseMs))
    },
    [drop, pauseMs]
  )
}

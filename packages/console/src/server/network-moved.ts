/**
 * Waits until the browser says that it has lost its network, or has one again.
 *
 * It is a hint to look and no verdict: away from any network the server of this
 * machine still answers.
 */
import { Effect } from "effect"

export const networkMoved: Effect.Effect<void> = Effect.callback((resume) => {
  const moved = () => resume(Effect.void)
  globalThis.addEventListener("online", moved)
  globalThis.addEventListener("offline", moved)
  return Effect.sync(() => {
    globalThis.removeEventListener("online", moved)
    globalThis.removeEventListener("offline", moved)
  })
})

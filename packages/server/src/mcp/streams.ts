/**
 * What all streams to clients of the MCP door have in common: their number is bounded, and each ends with its client.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { Effect } from "effect"

/** How many streams are open, of each owner and of all; who comes too late is refused. */
export const makePlaces = <E>(
  bounds: { readonly ofOwner: number; readonly inAll: number },
  refuse: () => E
) => {
  const open = new Map<string, number>()
  let openInAll = 0
  return {
    enter: (owner: string): Effect.Effect<string, E> =>
      Effect.suspend(() => {
        const count = open.get(owner) ?? 0
        if (count >= bounds.ofOwner || openInAll >= bounds.inAll) return Effect.fail(refuse())
        open.set(owner, count + 1)
        openInAll += 1
        return Effect.succeed(owner)
      }),
    leave: (owner: string): Effect.Effect<void> =>
      Effect.sync(() => {
        openInAll -= 1
        const left = (open.get(owner) ?? 1) - 1
        if (left === 0) open.delete(owner)
        else open.set(owner, left)
      })
  }
}

/** Until the client has gone. */
export const gone = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const leave = () => resume(Effect.void)
    if (signal.aborted) leave()
    signal.addEventListener("abort", leave, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", leave))
  })

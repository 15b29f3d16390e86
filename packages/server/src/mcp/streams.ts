/**
 * What all streams to clients of the MCP door have in common: their number is bounded, and each ends with its client.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import type { ServerContext } from "@modelcontextprotocol/server"
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

/** Until the client has gone: it has taken its request back, or its session or its connection has ended. */
export const gone = ({ http, mcpReq }: ServerContext): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const signals = [mcpReq.signal, ...(http?.req === undefined ? [] : [http.req.signal])]
    const leave = () => resume(Effect.void)
    for (const signal of signals) signal.addEventListener("abort", leave, { once: true })
    if (signals.some(({ aborted }) => aborted)) leave()
    return Effect.sync(() => {
      for (const signal of signals) signal.removeEventListener("abort", leave)
    })
  })

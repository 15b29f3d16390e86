/**
 * Stands between a command and a server, and never answers some requests.
 */
import { Effect } from "effect"

export interface StallingProxy {
  readonly url: string
  /** How many requests wait for ever. */
  readonly stalled: () => number
}

/** A proxy in front of a server, until the scope ends; requests are told as `METHOD path`. */
export const stallingProxy = (server: string, isStalled: (line: string) => boolean) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const state = { stalled: 0 }
        const proxy = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          idleTimeout: 0,
          fetch: async (request) => {
            const { pathname, search } = new URL(request.url)
            if (isStalled(`${request.method} ${pathname}`)) {
              state.stalled += 1
              return new Promise<Response>(() => {})
            }
            request.headers.delete("accept-encoding")
            const { headers, method, signal } = request
            const body = method === "GET" ? null : await request.bytes()
            return fetch(server + pathname + search, { method, headers, body, signal })
          }
        })
        return { proxy, state }
      }),
      ({ proxy }) => Effect.promise(() => proxy.stop(true))
    ),
    ({ proxy, state }): StallingProxy => ({
      url: `http://127.0.0.1:${proxy.port}`,
      stalled: () => state.stalled
    })
  )

/**
 * A server before another one, which answers one path itself and may be held in the middle of that answer.
 */
import { Effect } from "effect"
import type { FakeServer } from "./fake-server.ts"

export interface Answer {
  readonly path: string
  /** What is answered at once. */
  readonly first: string
  /** What follows when the answer is let go. */
  readonly rest?: string
  /** Whether the rest comes again and again for as long as it is read. */
  readonly isEndless?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** Starts it for the scope of a test. */
export const heldServer = (
  behind: FakeServer,
  { first, headers = {}, isEndless = false, path, rest = "" }: Answer
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const gate = Promise.withResolvers<void>()
        const asked: Array<URL> = []
        const encoder = new TextEncoder()
        const body = () =>
          new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(encoder.encode(first)),
            pull: async (controller) => {
              await gate.promise
              controller.enqueue(encoder.encode(rest))
              if (!isEndless) controller.close()
            }
          })
        const server = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          idleTimeout: 0,
          fetch: async (request) => {
            const url = new URL(request.url)
            if (url.pathname !== path)
              return fetch(new Request(`${behind.url}${url.pathname}${url.search}`, request))
            await request.arrayBuffer()
            asked.push(url)
            return new Response(body(), { headers: { "content-type": "application/x-ndjson", ...headers } })
          }
        })
        return { server, gate, asked }
      }),
      ({ server }) => Effect.promise(() => server.stop(true))
    ),
    ({ asked, gate, server }) => ({
      url: `http://127.0.0.1:${server.port}`,
      /** Where it was asked for the path. */
      asked,
      letGo: Effect.sync(() => gate.resolve())
    })
  )

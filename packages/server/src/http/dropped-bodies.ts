/**
 * Reads the rest of a body that is refused, and keeps nothing of it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A connection that ends while its client still sends is reset, and the answer
 * with it: most clients then tell of a broken connection. So a bounded part is
 * waited for. Whoever sends more, or more slowly, is cut off.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { httpLimits } from "../limits.ts"

/** Waits until a body of which nobody has read anything is here, is too much, or comes no more. */
export const dropBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (Number(request.headers["content-length"] ?? 0) > httpLimits.dropMaxBytes) return
  const source = NodeHttpServerRequest.toIncomingMessage(request)
  let bytes = 0
  const ended = Effect.callback<void>((resume) => {
    const end = () => resume(Effect.void)
    source.on("data", (part: Uint8Array) => {
      bytes += part.byteLength
      if (bytes > httpLimits.dropMaxBytes) end()
    })
    for (const event of ["end", "close", "error"]) source.once(event, end)
  })
  const quiet = Effect.gen(function* () {
    let before = -1
    while (bytes > before) {
      before = bytes
      yield* Effect.sleep(httpLimits.dropQuietMs)
    }
  })
  yield* Effect.raceFirst(ended, quiet).pipe(Effect.timeoutOption(httpLimits.dropTimeoutMs))
})

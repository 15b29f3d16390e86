/**
 * The stream of a session of 2025-11-25: what the SDK says there, and of which resources have changed.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A session may be told at another server than the one at which it subscribed, so
 * this knows its id and asks the rows. When the server stops the stream is closed
 * without a word, as its revision has it, and the client opens another.
 */
import { Effect, Stream } from "effect"
import { Closing } from "../http/closing.ts"
import type { Streaming } from "./answers.ts"
import { type Listening, ResourceUpdates } from "./resource-updates.ts"

/** What becomes of the answer to a request: a GET opens the stream of its session. */
export const makeSessionStream = Effect.gen(function* () {
  const updates = yield* ResourceUpdates
  const closing = yield* Closing
  return (
    method: string,
    listening: Listening | undefined,
    sessionId: string | undefined,
    lost: Effect.Effect<unknown>
  ): Streaming => {
    // A stream of 2026-07-28 is answered when the server stops, by whoever serves it.
    if (method !== "GET") return { over: lost, told: Effect.succeed(Stream.never) }
    return {
      over: Effect.raceFirst(lost, closing.begun),
      told:
        listening === undefined || sessionId === undefined
          ? Effect.succeed(Stream.never)
          : Effect.map(updates.ofSession(listening, sessionId), Stream.map(frameOf))
    }
  }
})

const encoder = new TextEncoder()

/** That a resource has changed, as it stands in a stream. */
const frameOf = (uri: string): Uint8Array =>
  encoder.encode(
    `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } })}\n\n`
  )

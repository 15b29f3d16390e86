/**
 * Gathers a streamed answer into a whole one.
 *
 * effect's `LanguageModel` wants both ways of asking; the engine streams, so
 * the whole answer is made of the stream and there is one path to a provider.
 */
import { Effect, Stream } from "effect"
import type { AiError, Response } from "effect/ai"

/** Runs a streamed answer to its end: its text as one part, then its tool calls and its finish. */
export const collectParts = (
  stream: Stream.Stream<Response.StreamPartEncoded, AiError.AiError>
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.map(Stream.runCollect(stream), (parts) => {
    const text = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")
    const rest = parts.filter((part) => part.type === "tool-call" || part.type === "finish")
    return text === "" ? [...rest] : [{ type: "text", text }, ...rest]
  })

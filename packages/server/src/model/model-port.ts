/**
 * What every model is to the engine: a request in, the parts of an answer out.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * Both are in effect's words: it is the side of its `LanguageModel` that a
 * provider fills, so `LanguageModel.make` takes any of our models as it is. The
 * engine asks this side, because the other looks through the whole prompt for
 * approvals of tools and decodes each part in a queue of its own, for a loop that
 * we switch off. What came from another machine is judged by whoever translates it.
 */
import type { Spoken } from "@tropism/domain/context-window"
import type { Stream } from "effect"
import type { AiError, LanguageModel, Response } from "effect/ai"

/** A request in effect's words, with the counts that only models without a network answer by. */
export interface PortRequest extends Pick<LanguageModel.ProviderOptions, "prompt" | "tools" | "toolChoice"> {
  /** How many requests of the run were answered before; a recorded run is answered by it. */
  readonly step?: number | undefined
  /** How much was said so far, where the prompt may hold only the newest of it; a script counts by it. */
  readonly spoken?: Spoken | undefined
}

/** The parts of an answer as they come. */
export type PartStream = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

/** A model, of whatever provider. */
export type ModelPort = (request: PortRequest) => PartStream

/**
 * Two models that are asked the same at the same time: the first that says anything is heard (S004-F07).
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * The other request is broken off at that moment, on the wire too. A model that
 * fails before either has spoken leaves the race to the other; what was said
 * cannot be unsaid, so a winner that breaks down later is not stood in for.
 */
import { Stream } from "effect"
import { ModelFailure, type ModelPart } from "./model-request.ts"

type Parts = Stream.Stream<ModelPart, ModelFailure>

/** Hears whoever speaks first; where nobody does, the failure tells of both. */
export const race = (first: Parts, second: Parts): Parts =>
  Stream.suspend(() => {
    const failures: Array<ModelFailure> = []
    const noted = (parts: Parts): Parts =>
      Stream.mapError(parts, (failure) => {
        if (!failure.outputBegan) failures.push(failure)
        return failure
      })
    return Stream.mapError(Stream.race(noted(first), noted(second)), (failure) => {
      const other = failures.find((each) => each !== failure)
      return other === undefined || failure.outputBegan
        ? failure
        : new ModelFailure({
            ...failure,
            message: `${failure.message} (asked beside ${other.provider}:${other.model}, which failed too: ${other.message})`
          })
    })
  })

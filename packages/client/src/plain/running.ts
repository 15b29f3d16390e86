/**
 * From Effect to what JavaScript itself has: promises and async iterators that an `AbortSignal` ends.
 */
import { Cause, Effect, Exit, Stream } from "effect"

/** Runs an effect; an aborted one rejects with the signal's reason, and its request is aborted with it. */
export const promised = <A>(effect: Effect.Effect<A, unknown>, signal?: AbortSignal): Promise<A> =>
  Effect.runPromiseExit(untilAborted(effect, signal)).then((exit) =>
    Exit.isSuccess(exit) ? exit.value : Promise.reject(Cause.squash(exit.cause))
  )

/** Elements one by one; leaving the loop, or the signal, ends the connection behind it. */
export const iterated = <A>(stream: Stream.Stream<A, unknown>, signal?: AbortSignal): AsyncIterable<A> =>
  Stream.toAsyncIterable(signal ? Stream.interruptWhen(stream, aborted(signal)) : stream)

const untilAborted = <A>(effect: Effect.Effect<A, unknown>, signal?: AbortSignal) =>
  signal ? Effect.raceFirst(effect, aborted(signal)) : effect

/** Fails with the signal's reason as soon as it is aborted. */
const aborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.callback<never, unknown>((resume) => {
    const end = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return end()
    signal.addEventListener("abort", end, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", end))
  })

/**
 * Carries the words of answers that are being written between servers.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * Each context has one place in the cluster where its words come together: the
 * server that writes sends them there, those where somebody watches fetch them
 * there. Nothing is decided here, and nothing kept but while a place moves to
 * another server. A word may be lost all the same; the log has it a moment later.
 */
import { TextDeltaEvent } from "@tropism/domain/context-event"
import { Effect, Fiber, PubSub, Queue, Schema, Stream } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { PassingWords, type Place } from "../agent/passing-words.ts"
import { clusterLimits } from "./cluster-limits.ts"
import { type Pass, sendWords } from "./sending-words.ts"

/** Words, and the server at which they were written: it has shown them already. */
const Words = Schema.Struct({ from: Schema.String, deltas: Schema.Array(TextDeltaEvent) })

/** Where the words of one context come together. */
const LiveContext = Entity.make("LiveContext", [
  /** Answers whether anybody watches. */
  Rpc.make("Pass", { payload: Words.fields, success: Schema.Boolean }),
  Rpc.make("Watch", { success: Words, stream: true })
])

/** What happens at a context's place. */
export const liveContexts = LiveContext.toLayer(
  Effect.gen(function* () {
    const said = yield* PubSub.sliding<typeof Words.Type>(clusterLimits.waitingPieces)
    let watching = 0
    const counted = Effect.acquireRelease(
      Effect.sync(() => (watching += 1)),
      () => Effect.sync(() => (watching -= 1))
    )
    return LiveContext.of({
      Pass: ({ payload }) => Effect.map(PubSub.publish(said, payload), () => watching > 0),
      Watch: () => Stream.unwrap(Effect.as(counted, Stream.fromPubSub(said)))
    })
  }),
  { concurrency: clusterLimits.requestsAtContext }
)

/** Sends what is written here and fetches what is watched here, until the scope ends. */
export const carryWords = (address: string) =>
  Effect.gen(function* () {
    const words = yield* PassingWords
    const contextAt = yield* LiveContext.client
    yield* Effect.forkScoped(sendWords(words, passing(contextAt, address)))
    yield* Effect.forkScoped(fetching(words, contextAt, address))
  })

type ContextAt = Effect.Success<typeof LiveContext.client>

/** Words that are on their way for too long are given up. */
const passing =
  (contextAt: ContextAt, from: string): Pass =>
  (place, deltas) =>
    contextAt(place)
      .Pass({ from, deltas })
      .pipe(
        Effect.timeoutOption(clusterLimits.passTimeoutMs),
        Effect.catchCause(() => Effect.succeedNone)
      )

/** Fetches the words of each context for as long as somebody watches it here. */
const fetching = (words: PassingWords["Service"], contextAt: ContextAt, from: string) =>
  Effect.gen(function* () {
    const watched = new Map<Place, Fiber.Fiber<unknown>>()
    const attention = yield* words.attention

    const fetch = (place: Place) =>
      contextAt(place)
        .Watch()
        .pipe(
          Stream.runForEach(({ deltas, from: writer }) =>
            Effect.sync(() => {
              if (writer !== from) for (const delta of deltas) words.hear({ place, delta })
            })
          ),
          // The place has moved to another server, or is not reached: it is looked for again.
          Effect.catchCause((cause) => Effect.logDebug("A context's words are looked for again", cause)),
          Effect.andThen(Effect.sleep(clusterLimits.retryMs)),
          Effect.forever
        )

    // Who fetches ends with whoever began it: a server that leaves tells answers to their end.
    return yield* Effect.gen(function* () {
      yield* Queue.take(attention.changed)
      const places = attention.places()
      for (const place of places)
        if (!watched.has(place)) watched.set(place, yield* Effect.forkScoped(fetch(place)))
      for (const [place, fiber] of watched)
        if (!places.has(place)) {
          watched.delete(place)
          yield* Fiber.interrupt(fiber)
        }
    }).pipe(Effect.forever)
  }).pipe(Effect.scoped)

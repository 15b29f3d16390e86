/**
 * What happens, as it happens: feeds as async iterables that survive cut connections and servers.
 *
 * A feed begins where its address says (`after`), else with what is published from then on, and
 * goes on behind what was told last, at whichever server answers next; `lastEventId`
 * is where another program could go on.
 */
import { Effect, Stream } from "effect"
import { HttpClient } from "effect/http"
import { type FeedFault, type FeedText, readFeed, type ReadingOptions } from "../feed-reading.ts"
import { type Asked, ask, type Line, problemOf, requestOf, unreachable, valueOf } from "./asking.ts"
import type { Feed, LiveOptions } from "./call-shapes.ts"
import { iterated } from "./running.ts"

/** Follows a log from where somebody stopped, for ever or until it is over. */
export const feedOf = <A>(
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  options: LiveOptions,
  isOver?: Effect.Effect<boolean, Error>
): Feed<A> => {
  const { after } = options
  let lastEventId: string | undefined
  const begun = Effect.map(asked, (call): Asked => ({ ...call, query: { ...call.query, after } }))
  const reading = (): ReadingOptions => ({
    lastEventId,
    begins: (id) => void (lastEventId = id),
    isOver: isOver ? Effect.orElseSucceed(isOver, () => false) : undefined
  })
  const events = Stream.suspend(() => textsOf(line, begun, reading())).pipe(
    Stream.map((event) => {
      lastEventId = event.id ?? lastEventId
      return JSON.parse(event.text) as A
    })
  )
  return {
    [Symbol.asyncIterator]: () => iterated(events, options.signal)[Symbol.asyncIterator](),
    get lastEventId() {
      return (
        lastEventId ??
        (after === undefined || after === "now" ? undefined : after === "start" ? "0" : String(after))
      )
    }
  }
}

/** The events of an address as they came. */
export const textsOf = (
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  options?: ReadingOptions
): Stream.Stream<FeedText, Error> =>
  Stream.unwrap(Effect.map(asked, (call) => readFeed(requestOf(line.connection, call), options))).pipe(
    Stream.mapError((fault) => (fault instanceof Error ? fault : errorOf(line, fault))),
    Stream.provideService(HttpClient.HttpClient, line.once)
  )

const errorOf = (line: Line, fault: FeedFault): Error =>
  fault.fault === "refused"
    ? problemOf(fault.response, fault.answer)
    : unreachable(
        line.connection,
        fault.fault === "lost" ? `${fault.failures} connections failed` : fault.reason
      )

/** Whether a run has ended. */
export const hasEnded = (line: Line, run: Effect.Effect<Asked, Error>): Effect.Effect<boolean, Error> =>
  run.pipe(
    Effect.flatMap((asked) => ask(line, asked)),
    Effect.flatMap(valueOf),
    Effect.map((value) => (value as { readonly completedAt: string | null }).completedAt !== null)
  )

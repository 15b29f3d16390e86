/**
 * Watching a log: one reading for all, a bounded buffer, and the log itself for whoever is behind.
 */
import { describe, expect, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Effect, Fiber, Latch, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Topic, Notifier } from "../outbox/notifier.ts"
import { Permits } from "./access.ts"
import { streamLimits } from "./limits.ts"
import { Closing } from "./listener.ts"
import { LiveLogs, type LiveSource, type SseEvent } from "./live-logs.ts"

const topic: Topic = "context:here/talk"

/** A log in memory that counts how often it is read. */
const newLog = () => {
  const state = {
    count: 0,
    reads: 0,
    isOver: false,
    /** Up to which event nothing is left but its place. */
    purgedUntil: 0,
    show: (event: SseEvent): void => void event
  }
  const source: LiveSource = {
    key: topic,
    projectId: ProjectId.make("018f0000-0000-7000-8000-000000000000"),
    topic,
    end: Effect.sync(() => state.count),
    isOver: Effect.sync(() => state.isOver),
    isPurgeable: true,
    passing: (show) => Effect.sync(() => void (state.show = show)),
    read: (after, limit) =>
      Effect.sync(() => {
        state.reads += 1
        const count = Math.min(limit, Math.max(0, state.count - after))
        return Array.from({ length: count }, (_, index) => {
          const event = eventOf(after + index + 1)
          return after + index < state.purgedUntil ? { ...event, json: "purged" } : event
        })
      })
  }
  return { state, source }
}

const eventOf = (number: number): SseEvent => ({
  number,
  id: `talk:${number}`,
  name: "Said",
  json: { number }
})

const piece = (text: string): SseEvent => ({ number: undefined, id: "", name: "Piece", json: text })

/** Lets the log grow, and everybody take what there is. */
const grow = (state: ReturnType<typeof newLog>["state"], count: number) =>
  Effect.gen(function* () {
    state.count += count
    yield* (yield* Notifier).signal(topic)
    yield* settled
  })

const settled = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })

/** Watches until the log is over; what has come so far, in order. */
const watch = Effect.fnUntraced(function* (
  source: LiveSource,
  after = 0,
  taking: Effect.Effect<void> = Effect.void
) {
  const heard: Array<string> = []
  const logs = yield* LiveLogs
  const fiber = yield* logs.watch(source, after, { key: "", holds: Effect.succeed(true) }).pipe(
    Stream.decodeText,
    Stream.runForEach((text) =>
      Effect.andThen(
        taking,
        Effect.sync(() => heard.push(...(text.match(/(?<=data: ).*/g) ?? [])))
      )
    ),
    Effect.forkChild
  )
  yield* settled
  return { heard, fiber }
})

const upTo = (count: number, from = 1): ReadonlyArray<string> =>
  Array.from({ length: count - from + 1 }, (_, index) => JSON.stringify({ number: from + index }))

const layer = Layer.provideMerge(LiveLogs.layer, Layer.mergeAll(Notifier.layer, Closing.layer, Permits.layer))

describe("A log that is watched", () => {
  it.effect("is read once for a thousand who watch it, and no more when the last of them has gone", () =>
    Effect.gen(function* () {
      const { source, state } = newLog()
      const watching = yield* Effect.forEach(Array.from({ length: 1_000 }), () => watch(source))
      const before = state.reads
      for (let times = 0; times < 10; times += 1) yield* grow(state, 2)
      for (const { heard } of watching) expect(heard).toEqual(upTo(20))
      // Each wake-up is one page and the look that finds nothing behind it.
      expect(state.reads - before).toBeLessThanOrEqual(20)
      yield* Fiber.interruptAll(watching.map(({ fiber }) => fiber))
      const reads = state.reads
      yield* grow(state, 1)
      expect(state.reads).toBe(reads)
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "keeps for one who is slow no more than its buffer: it reads the log, and misses what passed by",
    () =>
      Effect.gen(function* () {
        const { source, state } = newLog()
        const latch = yield* Latch.make(true)
        const quick = yield* watch(source)
        const slow = yield* watch(source, 0, latch.await)
        yield* grow(state, 1)
        yield* latch.close
        state.show(piece("early"))
        yield* settled
        const count = streamLimits.bufferEvents * 3
        for (let grown = 1; grown < count; grown += 1) yield* grow(state, 1)
        state.show(piece("late"))
        yield* latch.open
        yield* settled
        yield* grow(state, 1)
        yield* Effect.forEach(Array.from({ length: 100 }), () => settled)
        expect(quick.heard).toEqual(
          upTo(count + 1).flatMap((event, index) =>
            index === 0 ? [event, '"early"'] : index === count - 1 ? [event, '"late"'] : [event]
          )
        )
        expect(slow.heard.filter((text) => text.startsWith("{"))).toEqual(upTo(count + 1))
        expect(slow.heard).not.toContain('"late"')
      }).pipe(Effect.provide(layer))
  )

  it.effect("tells nobody who comes then what was purged, whoever watched before", () =>
    Effect.gen(function* () {
      const { source, state } = newLog()
      const early = yield* watch(source)
      yield* grow(state, 3)
      state.purgedUntil = 2
      const late = yield* watch(source)
      const later = yield* watch(source, 1)
      yield* grow(state, 1)
      expect(early.heard).toEqual(upTo(4))
      expect(late.heard).toEqual(['"purged"', '"purged"', ...upTo(4, 3)])
      expect(later.heard).toEqual(['"purged"', ...upTo(4, 3)])
    }).pipe(Effect.provide(layer))
  )

  it.effect("tells it no more to one who is slow, two heartbeats later", () =>
    Effect.gen(function* () {
      const { source, state } = newLog()
      const latch = yield* Latch.make(true)
      const slow = yield* watch(source, 0, latch.await)
      yield* grow(state, 1)
      yield* latch.close
      // The second is in its hands, the third waits for it.
      yield* grow(state, 1)
      yield* grow(state, 1)
      state.purgedUntil = 3
      yield* TestClock.adjust(2 * streamLimits.heartbeatIntervalMs)
      yield* latch.open
      yield* settled
      yield* grow(state, 1)
      expect(slow.heard).toEqual([...upTo(2), '"purged"', JSON.stringify({ number: 4 })])
    }).pipe(Effect.provide(layer))
  )

  it.effect("ends for everybody once it is over and they have it whole, also for those who come then", () =>
    Effect.gen(function* () {
      const { source, state } = newLog()
      const first = yield* watch(source)
      yield* grow(state, 3)
      state.isOver = true
      yield* grow(state, 300)
      yield* Fiber.join(first.fiber)
      expect(first.heard).toEqual(upTo(303))
      const late = yield* watch(source, 1)
      yield* Fiber.join(late.fiber)
      expect(late.heard).toEqual(upTo(303, 2))
    }).pipe(Effect.provide(layer))
  )
})

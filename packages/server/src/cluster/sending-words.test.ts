/**
 * The order in which words go to other servers, and who waits for whom.
 */
import { describe, expect, it } from "@effect/vitest"
import { ContextName } from "@tropism/domain/context-event"
import { Deferred, Effect, Option, Queue } from "effect"
import { TestClock } from "effect/testing"
import { TextDeltas, type Place } from "../contexts/text-deltas.ts"
import { gatheringMs, type Pass, sendWords } from "./delta-relay.ts"
import { clusterLimits } from "./limits.ts"

const talk = ContextName.make("talk")
const placeOf = (project: string): Place => `${project}/${talk}`

const say = (project: string, delta: string) =>
  Effect.flatMap(TextDeltas, (words) =>
    words.show(project, {
      type: "TextDeltaEvent",
      id: `${talk}:1.d1`,
      timestamp: "2026-01-01T00:00:00.000Z",
      agentName: talk,
      parentEventId: null,
      triggersAgentTurn: false,
      delta
    })
  )

/** Sends to places that answer as it is said here, and tells what was brought. */
const carrying = Effect.fnUntraced(function* (
  answers: Readonly<Record<Place, Effect.Effect<Option.Option<boolean>>>>
) {
  const brought = yield* Queue.unbounded<readonly [Place, string]>()
  const pass: Pass = (place, deltas) =>
    Effect.andThen(
      Queue.offer(brought, [place, deltas.map(({ delta }) => delta).join("")]),
      answers[place] ?? Effect.succeedSome(true)
    )
  yield* Effect.forkScoped(sendWords(yield* TextDeltas, pass))
  // Who carries has looked for words once: before that none are kept.
  yield* Effect.yieldNow
  return brought
})

const nextRound = TestClock.adjust(clusterLimits.passIntervalMs)

describe("Words that go to other servers", () => {
  it.effect("wait for none but those before them, however long another place takes", () =>
    Effect.gen(function* () {
      const answered = yield* Deferred.make<Option.Option<boolean>>()
      const brought = yield* carrying({ [placeOf("slow")]: Deferred.await(answered) })
      yield* say("slow", "a")
      yield* say("quick", "one")
      expect([yield* Queue.take(brought), yield* Queue.take(brought)]).toEqual([
        [placeOf("slow"), "a"],
        [placeOf("quick"), "one"]
      ])
      yield* nextRound
      yield* say("slow", "b")
      yield* say("quick", "two")
      expect(yield* Queue.take(brought)).toEqual([placeOf("quick"), "two"])
      yield* nextRound
      yield* say("slow", "c")
      yield* say("quick", "three")
      expect(yield* Queue.take(brought)).toEqual([placeOf("quick"), "three"])
      yield* Deferred.succeed(answered, Option.some(true))
      expect(yield* Queue.take(brought)).toEqual([placeOf("slow"), "bc"])
    }).pipe(Effect.provide(TextDeltas.layer))
  )

  it.effect("do not go where nobody watches, for a while", () =>
    Effect.gen(function* () {
      const brought = yield* carrying({ [placeOf("empty")]: Effect.succeedSome(false) })
      yield* say("empty", "a")
      expect(yield* Queue.take(brought)).toEqual([placeOf("empty"), "a"])
      yield* nextRound
      yield* say("empty", "b")
      yield* say("quick", "one")
      expect(yield* Queue.take(brought)).toEqual([placeOf("quick"), "one"])
      yield* TestClock.adjust(clusterLimits.unwatchedMs)
      yield* say("empty", "c")
      expect(yield* Queue.take(brought)).toEqual([placeOf("empty"), "c"])
    }).pipe(Effect.provide(TextDeltas.layer))
  )

  it.effect("wait for a place that moves, until those who watch have found it", () =>
    Effect.gen(function* () {
      const at: { answer: Option.Option<boolean> } = { answer: Option.none() }
      const brought = yield* carrying({ [placeOf("moving")]: Effect.sync(() => at.answer) })
      const looks = Effect.andThen(TestClock.adjust(clusterLimits.retryMs), Queue.take(brought))
      yield* say("moving", "a")
      expect(yield* Queue.take(brought)).toEqual([placeOf("moving"), "a"])
      yield* nextRound
      yield* say("moving", "b")
      expect(yield* looks).toEqual([placeOf("moving"), ""])
      at.answer = Option.some(false)
      expect(yield* looks).toEqual([placeOf("moving"), ""])
      at.answer = Option.some(true)
      expect(yield* looks).toEqual([placeOf("moving"), ""])
      yield* say("moving", "c")
      yield* TestClock.adjust(gatheringMs)
      expect(yield* Queue.take(brought)).toEqual([placeOf("moving"), "abc"])
    }).pipe(Effect.provide(TextDeltas.layer))
  )

  it.effect("wait also where those who watched have not found the place yet to which it moved", () =>
    Effect.gen(function* () {
      const at = { isWatched: true }
      const brought = yield* carrying({ [placeOf("moved")]: Effect.sync(() => Option.some(at.isWatched)) })
      const looks = Effect.andThen(TestClock.adjust(clusterLimits.retryMs), Queue.take(brought))
      yield* say("moved", "a")
      expect(yield* Queue.take(brought)).toEqual([placeOf("moved"), "a"])
      yield* nextRound
      at.isWatched = false
      yield* say("moved", "b")
      expect(yield* Queue.take(brought)).toEqual([placeOf("moved"), "b"])
      at.isWatched = true
      expect(yield* looks).toEqual([placeOf("moved"), ""])
      yield* TestClock.adjust(gatheringMs)
      expect(yield* Queue.take(brought)).toEqual([placeOf("moved"), "b"])
    }).pipe(Effect.provide(TextDeltas.layer))
  )

  it.effect("are given up where a place is not reached for too long", () =>
    Effect.gen(function* () {
      const brought = yield* carrying({ [placeOf("gone")]: Effect.succeedNone })
      yield* say("gone", "a")
      expect(yield* Queue.take(brought)).toEqual([placeOf("gone"), "a"])
      yield* TestClock.adjust(clusterLimits.movingMs)
      const looks = yield* Queue.takeAll(brought)
      expect(new Set(looks.map(([, text]) => text))).toEqual(new Set([""]))
      yield* TestClock.adjust(clusterLimits.unwatchedMs)
      yield* say("gone", "b")
      expect(yield* Queue.take(brought)).toEqual([placeOf("gone"), "b"])
    }).pipe(Effect.provide(TextDeltas.layer))
  )
})

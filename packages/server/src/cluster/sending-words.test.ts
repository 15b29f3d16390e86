/**
 * The order in which words go to other servers, and who waits for whom.
 */
import { describe, expect, it } from "@effect/vitest"
import { ContextName } from "@tropism/domain/context-event"
import { Deferred, Effect, Option, Queue } from "effect"
import { TestClock } from "effect/testing"
import { PassingWords, type Place } from "../agent/passing-words.ts"
import { clusterLimits } from "./cluster-limits.ts"
import { type Pass, sendWords } from "./sending-words.ts"

const talk = ContextName.make("talk")
const placeOf = (project: string): Place => `${project}/${talk}`

const say = (project: string, delta: string) =>
  Effect.flatMap(PassingWords, (words) =>
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
  yield* Effect.forkScoped(sendWords(yield* PassingWords, pass))
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
    }).pipe(Effect.provide(PassingWords.layer))
  )

  it.effect.each([
    ["where nobody watches", Option.some(false)],
    ["that was not reached", Option.none<boolean>()]
  ] as const)("do not go to a place %s, for a while", ([, answer]) =>
    Effect.gen(function* () {
      const brought = yield* carrying({ [placeOf("empty")]: Effect.succeed(answer) })
      yield* say("empty", "a")
      expect(yield* Queue.take(brought)).toEqual([placeOf("empty"), "a"])
      yield* nextRound
      yield* say("empty", "b")
      yield* say("quick", "one")
      expect(yield* Queue.take(brought)).toEqual([placeOf("quick"), "one"])
      yield* TestClock.adjust(clusterLimits.unwatchedMs)
      yield* say("empty", "c")
      expect(yield* Queue.take(brought)).toEqual([placeOf("empty"), "c"])
    }).pipe(Effect.provide(PassingWords.layer))
  )
})

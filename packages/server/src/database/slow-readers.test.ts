/**
 * Readers of whole projects: as slow as they are, as long as they read; and nobody in the way of others.
 */
import { assert, describe, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { makeTurns, type SlowlyRead, slowlyRead } from "./export-backpressure.ts"
import { dumpLimits } from "./limits.ts"

const { pieceBytes, readerStallMs } = dumpLimits
const maxMs = 30 * readerStallMs

const page = `${"x".repeat(20 * pieceBytes - 1)}\n`

/** Six pages for one reader, until they may have no more; `end` runs when nothing is held any more. */
const pages = (
  end: Effect.Effect<unknown>,
  lost: Effect.Effect<void> = Effect.never
): Stream.Stream<Uint8Array> => {
  const write: SlowlyRead["write"] = (offer) =>
    Effect.ensuring(
      Effect.forEach([1, 2, 3, 4, 5, 6], () => offer(page), { discard: true }),
      end
    )
  return slowlyRead({
    name: "export",
    advice: "Hurry.",
    maxMs,
    lost,
    failedLine: (error, reason) => `${reason}: ${error}\n`,
    write
  })
}

/** What a reader has read who does something behind each piece. */
const readBy = (stream: Stream.Stream<Uint8Array>, pause: (pieces: number) => Effect.Effect<unknown>) => {
  let pieces = 0
  return Stream.runFold(
    Stream.tap(stream, () => pause((pieces += 1))),
    () => "",
    (text, piece) => text + new TextDecoder().decode(piece)
  )
}

/** Lets the clock go on in steps until a fiber has ended. */
const stepping = Effect.fnUntraced(function* <A, E>(stepMs: number, fiber: Fiber.Fiber<A, E>) {
  for (let step = 0; step < 1_000 && fiber.pollUnsafe() === undefined; step++) yield* TestClock.adjust(stepMs)
  return yield* Fiber.join(fiber)
})

describe("The reader of a whole project", () => {
  it.effect("who takes nothing loses its turn, and learns of it when it comes back", () =>
    Effect.gen(function* () {
      const [ended, comesBack] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const stream = pages(Deferred.succeed(ended, undefined))
      const reading = yield* Effect.forkScoped(
        readBy(stream, (pieces) => (pieces === 5 ? Deferred.await(comesBack) : Effect.void))
      )
      const turn = yield* Effect.forkScoped(Deferred.await(ended))
      yield* stepping(readerStallMs / 3, turn)
      assert.isUndefined(reading.pollUnsafe())
      yield* Deferred.succeed(comesBack, undefined)
      const lines = (yield* Fiber.join(reading)).trim().split("\n")
      assert.strictEqual(lines.length, 3)
      assert.deepStrictEqual(lines.slice(0, 2), [page.trim(), page.trim()])
      assert.match(lines[2] ?? "", new RegExp(`^readerStalled: .*\\b${readerStallMs / 1_000}\\b`))
    })
  )

  it.effect("who takes little at a time is waited for, until all of it has taken too long", () =>
    Effect.gen(function* () {
      const reading = yield* Effect.forkScoped(
        readBy(pages(Effect.void), () => Effect.sleep(readerStallMs - 1_000))
      )
      const lines = (yield* stepping(readerStallMs - 1_000, reading)).trim().split("\n")
      assert.strictEqual(lines.length, 4)
      assert.match(lines.at(-1) ?? "", new RegExp(`^tookTooLong: .*\\b${maxMs / 60_000}\\b.* Hurry\\.$`))
    })
  )

  it.effect("who may read no more is told so behind what they had, and holds nothing", () =>
    Effect.gen(function* () {
      const lost = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const read = yield* readBy(pages(Deferred.succeed(ended, undefined), Deferred.await(lost)), (pieces) =>
        pieces === 5 ? Effect.andThen(Deferred.succeed(lost, undefined), Deferred.await(ended)) : Effect.void
      )
      const lines = read.trim().split("\n")
      assert.isBelow(lines.length, 6)
      assert.strictEqual(lines[0], page.trim())
      assert.match(lines.at(-1) ?? "", /^accessLost: /)
    })
  )

  it.effect("of one project leaves the other projects their turns", () =>
    Effect.gen(function* () {
      const inTurn = yield* makeTurns(2)
      const one = ProjectId.make("01990000-0000-7000-8000-000000000001")
      const other = ProjectId.make("01990000-0000-7000-8000-000000000002")
      const goOn = yield* Deferred.make<void>()
      let begun = 0
      const held = Effect.andThen(
        Effect.sync(() => void (begun += 1)),
        Deferred.await(goOn)
      )
      const many = yield* Effect.forEach([1, 2, 3], () => Effect.forkScoped(inTurn(one, held)))
      yield* Effect.yieldNow
      assert.strictEqual(yield* inTurn(other, Effect.succeed("done")), "done")
      assert.strictEqual(begun, 1)
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.joinAll(many)
      assert.strictEqual(begun, 3)
    })
  )
})

/**
 * Group commit by itself: what is in which batch, and who gets which outcome.
 */
import { expect, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Cause, Deferred, Effect, Exit, Fiber, Latch, Scope } from "effect"
import { makeGroupCommit, type Touched } from "./group-commit.ts"

const projectId = ProjectId.make("00000000-0000-7000-8000-000000000001")
const otherId = ProjectId.make("00000000-0000-7000-8000-000000000002")

type Submitted = Fiber.Fiber<string>

/** A group commit that writes nothing and notes its batches; each waits until the gate is open. */
const make = Effect.fnUntraced(function* (
  limits: Partial<Parameters<typeof makeGroupCommit>[0]["limits"]> = {},
  touches?: (item: string) => Touched
) {
  const batches: Array<ReadonlyArray<string>> = []
  const gate = yield* Latch.make(false)
  const begun = yield* Deferred.make<void>()
  const { submit } = yield* makeGroupCommit<string, string>({
    bytesOf: (item) => item.length,
    ...(touches === undefined ? {} : { touches }),
    limits: { batchItems: 4, batchBytes: 100, waitingItems: 100, ...limits },
    write: (_, items) =>
      Effect.sync(() => batches.push(items)).pipe(
        Effect.andThen(Deferred.succeed(begun, undefined)),
        Effect.andThen(gate.await),
        Effect.andThen(
          items.some((item) => item.startsWith("bad"))
            ? Effect.die(new Error(`refused ${items.join()}`))
            : Effect.succeed(items.map((item) => `kept ${item}`))
        )
      )
  })
  /** Submits items one after the other, each in a fiber of its own; the first is in a batch before the second comes. */
  const all = Effect.fnUntraced(function* (items: ReadonlyArray<string>) {
    const fibers: Array<Fiber.Fiber<string>> = []
    for (const item of items) {
      fibers.push(yield* Effect.forkChild(submit(projectId, item), { startImmediately: true }))
      yield* Deferred.await(begun)
    }
    return fibers
  })
  return { all, batches, gate, submit }
})

it.effect("what arrives while a batch is written is the next batch, within its bounds", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make()
    const fibers = yield* all(["a", "b", "c", "d", "e", "f"])
    yield* gate.open
    expect(yield* Effect.forEach(fibers, Fiber.join)).toEqual(
      ["a", "b", "c", "d", "e", "f"].map((item) => `kept ${item}`)
    )
    expect(batches).toEqual([["a"], ["b", "c", "d", "e"], ["f"]])
  })
)

it.effect("a batch is bounded in bytes, and takes at least one item", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make({ batchBytes: 10 })
    const fibers = yield* all(["a", "x".repeat(50), "bcdef", "ghijk", "l"])
    yield* gate.open
    yield* Effect.forEach(fibers, Fiber.join)
    expect(batches).toEqual([["a"], ["x".repeat(50)], ["bcdef", "ghijk"], ["l"]])
  })
)

it.effect("one bad item fails alone", () =>
  Effect.gen(function* () {
    const { all, gate } = yield* make()
    const fibers = yield* all(["a", "b", "bad", "c"])
    yield* gate.open
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    expect(exits.map(Exit.isSuccess)).toEqual([true, true, false, true])
  })
)

it.effect("an interrupted submitter withdraws an item that waits, and awaits one that is written", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make()
    const [first, second, third] = (yield* all(["a", "b", "c"])) as [Submitted, Submitted, Submitted]
    yield* Fiber.interrupt(second)
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true })
    expect(interrupting.pollUnsafe()).toBeUndefined()
    yield* gate.open
    yield* Fiber.join(interrupting)
    expect(yield* Fiber.join(third)).toBe("kept c")
    expect(batches).toEqual([["a"], ["c"]])
  })
)

it.effect("one project does not wait for another's batch", () =>
  Effect.gen(function* () {
    const { all, batches, gate, submit } = yield* make()
    yield* all(["a"])
    const other = yield* Effect.forkChild(submit(otherId, "other"), { startImmediately: true })
    for (let turns = 0; turns < 10; turns++) yield* Effect.yieldNow
    const seen = [...batches]
    yield* gate.open
    yield* Fiber.join(other)
    expect(seen).toEqual([["a"], ["other"]])
  })
)

it.effect("submitters beyond the bound wait, and come in turn", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make({ waitingItems: 2 })
    const fibers = yield* all(["a", "b", "c"])
    yield* gate.open
    yield* Effect.forEach(fibers, Fiber.join)
    expect(batches).toEqual([["a"], ["b"], ["c"]])
  })
)

/** "a1" touches a alone, "a+" shares it. */
const byFirst = (item: string): Touched =>
  item.endsWith("+") ? { alone: [], shared: [item.slice(0, 1)] } : { alone: [item.slice(0, 1)], shared: [] }

it.effect("of items that touch the same alone a batch has one, and the others keep their order", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make({ batchItems: 10 }, byFirst)
    const fibers = yield* all(["x1", "a1", "a2", "b1", "a3", "b2", "c1"])
    yield* gate.open
    yield* Effect.forEach(fibers, Fiber.join)
    expect(batches).toEqual([["x1"], ["a1", "b1", "c1"], ["a2", "b2"], ["a3"]])
  })
)

it.effect("many share what they touch, and what touches it alone is in another batch and not overtaken", () =>
  Effect.gen(function* () {
    const { all, batches, gate } = yield* make({ batchItems: 10 }, byFirst)
    const fibers = yield* all(["x1", "a+", "a+", "a1", "a+", "b+", "b1", "c1"])
    yield* gate.open
    yield* Effect.forEach(fibers, Fiber.join)
    expect(batches).toEqual([["x1"], ["a+", "a+", "b+", "c1"], ["a1", "b1"], ["a+"]])
  })
)

it.effect("when the scope ends, waiting submitters are interrupted", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { all } = yield* Scope.provide(make(), scope)
    const fibers = yield* all(["a", "b"])
    yield* Scope.close(scope, Exit.void)
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    expect(exits.map((exit) => Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause))).toEqual([true, true])
  })
)

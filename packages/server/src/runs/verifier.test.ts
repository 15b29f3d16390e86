/**
 * A verification has its time, in which it waits for its turn, too.
 */
import { expect, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Contexts } from "../contexts/contexts.ts"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { Verifier } from "./verifier.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")

/** A database in which no snapshot comes to an end; it counts those that are open. */
const endless = () => {
  let open = 0
  const inSnapshot = () =>
    Effect.acquireUseRelease(
      Effect.sync(() => void (open += 1)),
      () => Effect.never,
      () => Effect.sync(() => void (open -= 1))
    )
  return { open: () => open, layer: Layer.mock(Database, { inSnapshot }) }
}

it.effect("A verification of a project that takes for ever ends, and so do those behind it", () => {
  const database = endless()
  const layers = Layer.mergeAll(
    database.layer,
    Layer.mock(Contexts, {}),
    Layer.succeed(SqlClient.SqlClient, { literal: (text: string) => text } as never)
  )
  return Effect.gen(function* () {
    const { verify } = yield* Verifier
    const asked = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.flip(verify(project))))
    yield* TestClock.adjust(runLimits.verifyMaxMs - 1)
    expect(database.open()).toBe(1)
    yield* TestClock.adjust(1)
    for (const each of asked) expect(yield* Fiber.join(each)).toMatchObject({ _tag: "VerificationTooLong" })
    expect(database.open()).toBe(0)
  }).pipe(Effect.provide(Verifier.layer.pipe(Layer.provide(layers))))
})

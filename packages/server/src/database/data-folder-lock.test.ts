/**
 * Who gets a data folder, by a clock that stands still where it is not moved.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { holdFolder } from "./data-folder.ts"

const newFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tropism-lock-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** More than a program takes to begin. */
const longMs = 10_000

describe("A data folder", () => {
  it.effect("is had by whoever asks while its holder is ending", () =>
    Effect.gen(function* () {
      const folder = yield* newFolder
      const ending = yield* Scope.make()
      yield* Scope.provide(holdFolder(folder), ending)
      const next = yield* Effect.forkChild(Effect.scoped(holdFolder(folder)))
      yield* TestClock.adjust(100)
      expect(next.pollUnsafe()).toBeUndefined()
      yield* Scope.close(ending, Exit.void)
      yield* TestClock.adjust(longMs)
      expect(yield* Fiber.await(next)).toEqual(Exit.void)
    })
  )

  it.effect("is refused to whoever asks while its holder stays, with the holder's process", () =>
    Effect.gen(function* () {
      const folder = yield* newFolder
      yield* holdFolder(folder)
      const next = yield* Effect.forkChild(Effect.flip(Effect.scoped(holdFolder(folder))))
      yield* TestClock.adjust(longMs)
      expect(yield* Fiber.join(next)).toMatchObject({
        reason: "folderHeld",
        message: expect.stringMatching(new RegExp(`\\b${process.pid}\\b`))
      })
    })
  )
})

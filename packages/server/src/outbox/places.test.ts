/**
 * Places are shared by project: none takes all of them, and each has its turn.
 */
import { describe, expect, it } from "@effect/vitest"
import type { ProjectId } from "@tropism/domain/ids"
import { Deferred, Effect } from "effect"
import { makeFairSlots, type SlotBounds } from "./fair-slots.ts"

const due = (...ids: ReadonlyArray<string>) => ids.map((id) => ({ projectId: id as ProjectId }))

/** Rounds in which each project begins all that it may, and what each of them began. */
const rounds = Effect.fnUntraced(function* (bounds: SlotBounds) {
  const { occupy, round } = yield* makeFairSlots(bounds)
  const end = yield* Deferred.make<void>()
  return {
    end: Deferred.succeed(end, undefined),
    of: Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
      const begun: Array<readonly [string, number]> = []
      const begin = (projectId: ProjectId, atMost: number) =>
        Effect.gen(function* () {
          begun.push([projectId, atMost])
          for (let place = 0; place < atMost; place += 1) yield* occupy(projectId, Deferred.await(end))
          return atMost
        })
      expect(yield* round(due(...ids), begin)).toBe(begun.length > 0)
      return begun
    })
  }
})

describe("Places", () => {
  it.effect("are shared by the projects with work, and the last are for those that have none", () =>
    Effect.gen(function* () {
      const { end, of } = yield* rounds({ places: 6, sparePlaces: 2, placesPerProject: 3 })
      expect(yield* of("a")).toEqual([["a", 3]])
      expect(yield* of("a", "b")).toEqual([["b", 1]])
      expect(yield* of("a", "b")).toEqual([])
      expect(yield* of("a", "c", "d", "e")).toEqual([
        ["c", 1],
        ["d", 1]
      ])
      yield* end
      yield* Effect.yieldNow
      const [first] = yield* of("a", "e")
      expect(first).toEqual(["e", 3])
    })
  )

  it.effect("go round: the next is whoever stands behind the one that was served last", () =>
    Effect.gen(function* () {
      const served: Array<string> = []
      const { occupy, round } = yield* makeFairSlots({ places: 1, sparePlaces: 0, placesPerProject: 1 })
      for (let turn = 0; turn < 4; turn += 1) {
        const end = yield* Deferred.make<void>()
        yield* round(due("a", "b", "c"), (projectId) => {
          served.push(projectId)
          return Effect.as(occupy(projectId, Deferred.await(end)), 1)
        })
        yield* Deferred.succeed(end, undefined)
        yield* Effect.yieldNow
      }
      expect(served).toEqual(["a", "b", "c", "a"])
    })
  )
})

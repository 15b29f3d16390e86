/**
 * Neighbours to which many relationships lead: what is left out for them is told of.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { graphLimits } from "../src/limits.ts"
import { importLines, jsonl } from "../testing/import-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Makes relationships between nodes, the oldest first, each a type and the keys of its ends. */
const relate = Effect.fnUntraced(function* (
  story: Story,
  ...edges: ReadonlyArray<readonly [string, string, string]>
) {
  const end = (key: string) => ({ type: "Node", key })
  const keys = new Set(edges.flatMap(([, from, to]) => [from, to]))
  const told = yield* importLines(
    story,
    jsonl(
      ...[...keys].map((key) => ({ ...end(key), properties: {} })),
      ...edges.map(([type, from, to]) => ({
        relationship: { type, from: end(from), to: end(to) },
        properties: {}
      }))
    )
  )
  expect(told.at(-1)).toMatchObject({ type: "finished", relationshipsCreated: edges.length, failed: 0 })
})

/** What lies around a, by key and distance, and whether that may not be all. */
const aroundA = Effect.fnUntraced(function* (story: Story, depth: number, limit: number) {
  const [a] = (yield* story.get("/objects?type=Node&key=a")).items
  const { objects, truncated } = yield* story.get(
    `/objects/${a.id}/neighbors?direction=out&depth=${depth}&limit=${limit}`
  )
  return [objects.map(({ key, distance }: Json) => `${key}${distance}`).toSorted(), truncated]
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Neighbours", () => {
    it.effect("that are related twice keep nobody from being told of", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* relate(story, ["NEXT", "a", "c"])
        yield* relate(story, ["NEXT", "a", "b"], ["LIKES", "a", "b"])
        expect((yield* aroundA(story, 1, 1))[1]).toBe(true)
        expect(yield* aroundA(story, 1, 2)).toEqual([["b1", "c1"], false])
        expect(yield* aroundA(story, 3, 2)).toEqual([["b1", "c1"], false])
      })
    )

    it.effect(
      "that are related in more ways than are looked at leave the rest untold, and nothing farther is told instead",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ways = graphLimits.neighborSpareRelationships + 3
          yield* relate(story, ["NEXT", "a", "c"], ["NEXT", "b", "d"])
          yield* relate(
            story,
            ...Array.from({ length: ways }, (_, n): readonly [string, string, string] => [
              `WAY_${n}`,
              "a",
              "b"
            ])
          )
          expect(yield* aroundA(story, 2, 2)).toEqual([["b1"], true])
          expect(yield* aroundA(story, 2, 5)).toEqual([["b1", "c1", "d2"], false])
        })
    )
  })
})

/**
 * Exports and their readers: one moment, however slowly it is read, and not for ever.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { dumpLimits } from "../src/database/limits.ts"
import { transferLimits } from "../src/limits.ts"
import { exported, importLines, jsonl } from "../testing/import-words.ts"
import { beginReading, documents, largeGraph, openSnapshots } from "../testing/paused-reader.ts"
import { eventually } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

layer(SharedServer.layer)((it) => {
  describe("An export", () => {
    it.effect("shows one moment, however slowly it is read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const reader = yield* beginReading(story)
        yield* eventually(openSnapshots(story), (open) => open === 1)
        const [last] = (yield* story.get(`/objects?key=document-${documents - 1}`)).items
        yield* story.patch(`/objects/${last.id}`, { properties: { state: "new" } })
        yield* story.post("/objects", { type: "Document", key: "later" })
        const lines = yield* reader.rest
        expect(lines).toHaveLength(documents)
        expect(new Set(lines.map((line) => line.properties.state))).toEqual(new Set(["old"]))
        expect(yield* eventually(openSnapshots(story), (open) => open === 0)).toBe(0)
      })
    )

    it.effect("gives its connection back when its reader goes away, and its turn", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const readers = yield* Effect.forEach([1, 2], () => beginReading(story))
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* Effect.forEach(readers, (reader) => reader.leave)
        yield* eventually(openSnapshots(story), (open) => open === 0)
        expect(yield* exported(story)).toHaveLength(documents)
      })
    )

    it.effect("of one project has one turn at a time, and leaves the others theirs", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        yield* largeGraph(story)
        yield* other.post("/objects", { type: "Document", key: "small" })
        const readers = yield* Effect.forEach(
          Array.from({ length: transferLimits.concurrentExports + 1 }),
          () => beginReading(story)
        )
        yield* eventually(openSnapshots(story), (open) => open === 1)
        const exporting = yield* Effect.forkScoped(exported(other))
        yield* eventually(
          Effect.sync(() => exporting.pollUnsafe() !== undefined),
          (isDone) => isDone
        )
        expect(yield* Fiber.join(exporting)).toHaveLength(1)
        expect(yield* openSnapshots(story)).toBe(1)
        yield* Effect.forEach(readers, (reader) => reader.leave)
      })
    )

    it.effect("whose reader takes nothing ends with a line that says so, and gives its turn back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const reader = yield* beginReading(story)
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* asTimePasses(dumpLimits.readerStallMs / 4, openSnapshots(story), (open) => open === 0)
        const lines = yield* reader.rest
        expect(lines.length).toBeLessThan(documents)
        expect(lines.at(-1)).toEqual({ error: expect.any(String), reason: "readerStalled" })
        // Whoever imports it learns of it.
        const other = yield* newStoryHere
        const told = yield* importLines(other, jsonl(...lines))
        expect(told.find((line) => line.type === "badLine")).toMatchObject({ line: lines.length })
      })
    )
  })
})

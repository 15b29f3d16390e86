/**
 * What an import costs follows its lines, not what was imported before them.
 *
 * Nothing counts the tables here, as in the first minute of a project: plans are
 * those of empty tables. PostgreSQL counts the rows that are looked at.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { importLines, jsonl } from "../testing/import-words.ts"
import { countedReads } from "../testing/rows-read.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const objects = 800

/** Far more than a line looks at, and far less than there is. */
const mostRowsPerLine = 100

/** Objects that a file calls by keys, and by ids; and what relates each to the next. */
const file = (round: string): string => {
  const keys = Array.from({ length: objects }, (_, n) => `${round}-${n}`)
  const idOf = (n: number) => `0190a000-0000-7000-800${round}-${String(n).padStart(12, "0")}`
  return jsonl(
    ...keys.map((key, n) => ({ id: idOf(n), type: "Person", key, properties: { n } })),
    ...keys.slice(1).map((key, n) => ({
      relationship: { type: "KNOWS", from: { type: "Person", key }, to: idOf(n) },
      properties: {}
    }))
  )
}

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Cost of an import", () => {
    it.effect(
      "a line looks at few rows, however many came before it into tables that nothing has counted",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const tables = ["graph_objects", "graph_relationships", "imported_objects"]
          const before = yield* countedReads(story, tables)
          for (const round of ["1", "2"]) {
            const told = yield* importLines(story, file(round))
            expect(told.at(-1)).toMatchObject({
              created: objects,
              relationshipsCreated: objects - 1,
              failed: 0
            })
          }
          // The same once more: everything is found, by its key, its id and its ends.
          const again = yield* importLines(story, file("1"))
          expect(again.at(-1)).toMatchObject({ unchanged: objects, relationshipsUnchanged: objects - 1 })
          const after = yield* countedReads(story, tables)
          expect((after.rows - before.rows) / (6 * objects)).toBeLessThan(mostRowsPerLine)
        })
    )
  })
})

/**
 * Objects in the order of their names and of their types, page by page.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const query = (parameters: Record<string, string>): string => new URLSearchParams(parameters).toString()

const find = (story: Story, parameters: Record<string, string>) => story.get(`/objects?${query(parameters)}`)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Objects are listed by their names and by their types", () => {
    /** All that is listed, read so many at a time. */
    const inPages = Effect.fnUntraced(function* (story: Story, parameters: Record<string, string>) {
      const found: Array<string> = []
      let cursor: string | null = ""
      while (cursor !== null) {
        const page: Json = yield* find(story, { ...parameters, ...(cursor === "" ? {} : { cursor }) })
        found.push(
          ...page.items.map(({ type, key, properties }: Json) => `${type} ${key ?? properties.name}`)
        )
        cursor = page.nextCursor
      }
      return found
    })

    const furnished = Effect.gen(function* () {
      const story = yield* newStoryHere
      for (const [type, key, properties] of [
        ["Package", "Zod", {}],
        ["Package", "effect", { name: "a name that is not its key" }],
        ["Animal", null, { name: "ape" }],
        ["Package", "Éclair", {}],
        ["Animal", null, {}],
        ["Animal", null, { name: " ", title: "Bear" }],
        ["Animal", `zz${"😀".repeat(150)}`, {}],
        ["Note", "effect", {}]
      ] as const)
        yield* story.post("/objects", { type, key, properties })
      return story
    })

    it.effect("page by page, whatever their case; what has no name comes last", () =>
      Effect.gen(function* () {
        const story = yield* furnished
        const byName = yield* inPages(story, { sort: "name", limit: "200" })
        expect(byName).toEqual([
          "Animal ape",
          "Animal  ",
          "Package effect",
          "Note effect",
          "Package Zod",
          `Animal zz${"😀".repeat(150)}`,
          "Package Éclair",
          "Animal undefined"
        ])
        expect((yield* inPages(story, { sort: "name", limit: "1" })).toSorted()).toEqual(byName.toSorted())
        expect(yield* inPages(story, { sort: "name", limit: "3" })).toEqual(byName)
        const byType = yield* inPages(story, { sort: "type", limit: "200" })
        expect(byType).toEqual(
          ["Animal", "Note", "Package"].flatMap((type) => byName.filter((one) => one.startsWith(`${type} `)))
        )
        expect(yield* inPages(story, { sort: "type", limit: "1" })).toEqual(byType)
        expect(yield* inPages(story, { sort: "name", type: "Package", limit: "1" })).toEqual(
          byName.filter((one) => one.startsWith("Package "))
        )
        expect(yield* inPages(story, { sort: "name", query: "effect", limit: "1" })).toEqual([
          "Package effect",
          "Note effect"
        ])
      })
    )

    it.effect("only as they are now, and a cursor that no page gave is refused or finds a place", () =>
      Effect.gen(function* () {
        const story = yield* furnished
        for (const sort of ["name", "type"])
          expectProblem(
            yield* story.ask("GET", `/objects?${query({ sort, asOf: "2026-11-20T00:00:00Z" })}`),
            422,
            "sort"
          )
        const { nextCursor } = yield* find(story, { sort: "name", limit: "1" })
        expectProblem(
          yield* story.ask("GET", `/objects?${query({ sort: "type", cursor: nextCursor })}`),
          422,
          "cursor"
        )
        const [type, , ...rest] = nextCursor.split("~")
        for (const odd of ["AA", "_____w", "A"]) {
          const cursor = [type, odd, ...rest].join("~")
          expect((yield* story.ask("GET", `/objects?${query({ sort: "name", cursor })}`)).status).toBe(200)
        }
        expectProblem(
          yield* story.ask(
            "GET",
            `/objects?${query({ sort: "name", cursor: [type, "a=b", ...rest].join("~") })}`
          ),
          422,
          "cursor"
        )
      })
    )
  })
})

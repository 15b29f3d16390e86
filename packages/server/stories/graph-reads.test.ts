/**
 * Finding things in the graph: by properties, by words, by neighbourhood, and as it was.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, calling, endedRuns, make, watcher } from "../testing/story-words.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

const query = (parameters: Record<string, unknown>): string =>
  new URLSearchParams(
    Object.entries(parameters).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value)
    ])
  ).toString()

const find = (story: Story, parameters: Record<string, unknown>) => story.get(`/objects?${query(parameters)}`)

const names = (page: Json): ReadonlyArray<string> =>
  page.items.map((object: Json) => object.key ?? object.properties.name)

const packages = Effect.gen(function* () {
  const story = yield* newStoryHere
  const all: Array<Json> = []
  for (const [key, properties] of [
    ["left-pad", { license: "MIT", size: 12, author: { name: "Azer" }, tags: ["string", "pad"] }],
    ["right-pad", { license: "ISC", size: 40, tags: ["string"] }],
    ["is-odd", { license: "MIT", size: 9, about: "tells odd numbers; needs no padding" }],
    ["lodash", { license: null, size: 5_000, about: "many helpers" }],
    ["nameless", {}]
  ] as const)
    all.push(yield* story.post("/objects", { type: "Package", key, properties }))
  yield* story.post("/objects", { type: "Note", key: "left-pad", properties: { license: "MIT" } })
  return { story, all }
})

/** a → b → c → d, a → e, and f → a. */
const chain = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ids: Record<string, string> = {}
  for (const name of ["a", "b", "c", "d", "e", "f"])
    ids[name] = (yield* story.post("/objects", { type: "Node", key: name })).id
  const edges: Record<string, Json> = {}
  for (const [from, to, type] of [
    ["a", "b", "NEXT"],
    ["b", "c", "NEXT"],
    ["c", "d", "NEXT"],
    ["a", "e", "SIDE"],
    ["f", "a", "NEXT"],
    ["c", "a", "BACK"]
  ] as const)
    edges[`${from}${to}`] = yield* story.post("/relationships", { type, fromId: ids[from], toId: ids[to] })
  const around = (name: string, parameters: Record<string, unknown> = {}) =>
    Effect.map(story.get(`/objects/${ids[name]}/neighbors?${query(parameters)}`), (found: Json) => ({
      ...found,
      reached: found.objects.map(({ key, distance }: Json) => `${key}${distance}`),
      followed: found.relationships
        .map((edge: Json) => Object.keys(edges).find((name) => edges[name].id === edge.id))
        .toSorted()
    }))
  return { story, ids, edges, around }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Objects are found by their properties", () => {
    it.effect("with each operator, all conditions together, and the type", () =>
      Effect.gen(function* () {
        const { story } = yield* packages
        const where = (...conditions: ReadonlyArray<readonly [string, string, unknown]>) =>
          Effect.map(
            find(story, {
              type: "Package",
              where: conditions.map(([property, op, value]) => ({ property, op, value }))
            }),
            names
          )
        expect(yield* where(["license", "eq", "MIT"])).toEqual(["is-odd", "left-pad"])
        expect(yield* where(["license", "eq", null])).toEqual(["lodash"])
        expect(yield* where(["license", "ne", "MIT"])).toEqual(["nameless", "lodash", "right-pad"])
        expect(yield* where(["license", "in", ["ISC", null]])).toEqual(["lodash", "right-pad"])
        expect(yield* where(["size", "gte", 40])).toEqual(["lodash", "right-pad"])
        expect(yield* where(["size", "lt", 40], ["license", "eq", "MIT"])).toEqual(["is-odd", "left-pad"])
        expect(yield* where(["tags", "contains", "pad"])).toEqual(["left-pad"])
        expect(yield* where(["about", "contains", "odd"])).toEqual(["is-odd"])
        expect(yield* where(["about", "startsWith", "many"])).toEqual(["lodash"])
        expect(yield* where(["/author/name", "eq", "Azer"])).toEqual(["left-pad"])
        expect(yield* where(["license", "exists", false])).toEqual(["nameless"])
        expect(yield* where()).toHaveLength(5)
      })
    )

    it.effect("and what is no condition is refused with its place, whatever it is", () =>
      Effect.gen(function* () {
        const { story } = yield* packages
        for (const [where, pointer] of [
          ["license=MIT", "where"],
          ["{}", "where"],
          ['[{"property":"a","op":"regex","value":"(a+)+"}]', "where/0/op"],
          ['[{"property":"a","op":"in","value":"MIT"}]', "where/0"],
          ['[{"property":"","op":"eq","value":1}]', "where/0/property"],
          ['[{"property":"a","op":"eq"}]', "where/0/value"],
          ['[{"property":"/~2","op":"eq","value":1}]', "where/0/property"],
          ['[{"property":"/~","op":"eq","value":1}]', "where/0/property"],
          ['[{"property":"a","op":"eq","value":"\\u0000"}]', "where"],
          ['[{"property":"\\ud800","op":"eq","value":1}]', "where"],
          ['[{"property":"a","op":"gt","value":1e999}]', "where"],
          [
            JSON.stringify(Array.from({ length: 21 }, () => ({ property: "a", op: "eq", value: 1 }))),
            "where"
          ],
          [JSON.stringify([{ property: "/a/b/c/d/e/f/g/h/i", op: "eq", value: 1 }]), "where/0/property"]
        ] as const) {
          const answer = yield* story.ask("GET", `/objects?${query({ where })}`)
          expectProblem(answer, 422)
          expect([where, answer.body.errors[0].pointer]).toEqual([
            where,
            expect.stringMatching(new RegExp(`^${pointer}`))
          ])
        }
        // Names and values that mean something to SQL or JSON paths mean nothing here.
        for (const odd of ["'; drop table kb.graph_objects; --", "$.**", "a'::jsonb", "%", "\\", '"', "{}"]) {
          const page = yield* find(story, {
            where: [
              { property: odd, op: "eq", value: odd },
              { property: "x", op: "startsWith", value: odd }
            ]
          })
          expect(page.items).toEqual([])
        }
        expect((yield* story.get("/objects")).items).toHaveLength(6)
      })
    )
  })

  describe("Objects are found by words", () => {
    it.effect("in key, type and properties, or their beginnings, the best first", () =>
      Effect.gen(function* () {
        const { story } = yield* packages
        const search = (words: string, more: Record<string, unknown> = {}) =>
          Effect.map(find(story, { query: words, ...more }), names)
        // Twice in left-pad of the packages, in the key; then in a key; then in a text.
        expect(yield* search("pad", { type: "Package" })).toEqual(["left-pad", "right-pad", "is-odd"])
        expect(yield* search("left-pad MIT", { type: "Package" })).toEqual(["left-pad"])
        expect(yield* search("LEFT package")).toEqual(["left-pad"])
        expect(yield* search("number odd")).toEqual(["is-odd"])
        expect(yield* search("5000")).toEqual(["lodash"])
        expect(yield* search("azer")).toEqual(["left-pad"])
        expect(yield* search("umbers")).toEqual([])
        expect(yield* search("pad", { where: [{ property: "license", op: "eq", value: "ISC" }] })).toEqual([
          "right-pad"
        ])
        expect(yield* search("pad", { type: "Package", sort: "createdAt" })).toEqual([
          "is-odd",
          "right-pad",
          "left-pad"
        ])
        expect(yield* search(" ", { type: "Note" })).toEqual(["left-pad"])
      })
    )

    it.effect("in any script: what was written finds it again, in its own capitals too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const words = ["ΟΔΟΣ", "οδός", "İstanbul", "DİYARBAKIR", "Straße"]
        for (const word of words)
          yield* story.post("/objects", { type: "Note", key: word, properties: { about: `${word}, again` } })
        for (const word of words)
          expect([word, names(yield* find(story, { query: word }))]).toEqual([word, [word]])
      })
    )

    it.effect("follow an update at once, and a cursor goes on in the order of fit", () =>
      Effect.gen(function* () {
        const { story, all } = yield* packages
        yield* story.patch(`/objects/${all[4].id}`, { properties: { about: "pads everything" } })
        const first = yield* find(story, { query: "pad", type: "Package", limit: "2" })
        const second = yield* find(story, {
          query: "pad",
          type: "Package",
          limit: "2",
          cursor: first.nextCursor
        })
        const whole = yield* find(story, { query: "pad", type: "Package" })
        expect([...first.items, ...second.items]).toEqual(whole.items)
        expect(names(whole)).toHaveLength(4)
        expect(second.nextCursor).toBeNull()
        yield* story.delete(`/objects/${all[4].id}`)
        expect(names(yield* find(story, { query: "pads" }))).toEqual([])
      })
    )

    it.effect("and odd characters find nothing, and break nothing", () =>
      Effect.gen(function* () {
        const { story } = yield* packages
        for (const odd of [
          "!",
          "&|",
          "a:*",
          "'",
          "\\",
          "()",
          "<->",
          "left & !pad",
          ":*:*",
          '"',
          "%",
          "🙂",
          "﷽",
          "a".repeat(500)
        ])
          expect((yield* story.ask("GET", `/objects?${query({ query: odd })}`)).status).toBe(200)
        expect((yield* find(story, { query: "!&|" })).items).toEqual([])
        expectProblem(yield* story.ask("GET", `/objects?${query({ query: "a".repeat(501) })}`), 422, "query")
        expectProblem(yield* story.ask("GET", "/objects?sort=relevance"), 422, "sort")
        expectProblem(yield* story.ask("GET", "/objects?sort=size"), 422, "sort")
      })
    )
  })

  describe("Objects are listed by their last change", () => {
    it.effect("newest first, and a cursor of another order is refused", () =>
      Effect.gen(function* () {
        const { story, all } = yield* packages
        yield* story.patch(`/objects/${all[1].id}`, { properties: { size: 41 } })
        yield* story.patch(`/objects/${all[0].id}`, { properties: { size: 13 } })
        const whole = yield* find(story, { type: "Package", sort: "updatedAt" })
        expect(names(whole)).toEqual(["left-pad", "right-pad", "nameless", "lodash", "is-odd"])
        const pages: Array<string> = []
        let cursor: string | null = ""
        while (cursor !== null) {
          const page: Json = yield* find(story, {
            type: "Package",
            sort: "updatedAt",
            limit: "2",
            ...(cursor === "" ? {} : { cursor })
          })
          pages.push(...names(page))
          cursor = page.nextCursor
        }
        expect(pages).toEqual(names(whole))
        const { nextCursor } = yield* find(story, { limit: "1" })
        expectProblem(
          yield* story.ask("GET", `/objects?${query({ sort: "updatedAt", cursor: nextCursor })}`),
          422,
          "cursor"
        )
      })
    )
  })

  describe("Neighbours", () => {
    it.effect("are found to a depth, each once and at its least distance", () =>
      Effect.gen(function* () {
        const { around } = yield* chain
        expect(yield* around("a")).toMatchObject({
          reached: ["b1", "c1", "e1", "f1"],
          followed: ["ab", "ae", "ca", "fa"],
          truncated: false
        })
        expect(yield* around("a", { depth: "2" })).toMatchObject({
          reached: ["b1", "c1", "e1", "f1", "d2"],
          followed: ["ab", "ae", "bc", "ca", "cd", "fa"]
        })
        expect(yield* around("d", { depth: "3" })).toMatchObject({
          reached: ["c1", "a2", "b2", "e3", "f3"]
        })
      })
    )

    it.effect("in one direction, by one type, up to a limit that says that there is more", () =>
      Effect.gen(function* () {
        const { story, ids, around } = yield* chain
        expect(yield* around("a", { depth: "3", direction: "out" })).toMatchObject({
          reached: ["b1", "e1", "c2", "d3"],
          followed: ["ab", "ae", "bc", "ca", "cd"]
        })
        expect(yield* around("a", { depth: "2", direction: "in" })).toMatchObject({
          reached: ["c1", "f1", "b2"],
          followed: ["bc", "ca", "fa"]
        })
        expect(yield* around("a", { depth: "3", type: "NEXT", direction: "out" })).toMatchObject({
          reached: ["b1", "c2", "d3"],
          followed: ["ab", "bc", "cd"]
        })
        const few = yield* around("a", { depth: "3", limit: "3" })
        expect([few.reached.length, few.truncated]).toEqual([3, true])
        expect(few.reached.every((name: string) => name.endsWith("1"))).toBe(true)
        expect((yield* around("a", { depth: "3", limit: "5" })).truncated).toBe(false)
        for (const [parameters, pointer] of [
          [{ depth: "4" }, "depth"],
          [{ depth: "0" }, "depth"],
          [{ direction: "up" }, "direction"],
          [{ limit: "0" }, "limit"]
        ] as const) {
          expectProblem(
            yield* story.ask("GET", `/objects/${ids["a"]}/neighbors?${query(parameters)}`),
            422,
            pointer
          )
        }
        expectProblem(yield* story.ask("GET", `/objects/${nobody}/neighbors`), 404)
      })
    )

    it.effect("and what an agent finds by its tools is as much, and is kept as what it read", () =>
      Effect.gen(function* () {
        const { story, ids } = yield* chain
        yield* story.post("/agents", {
          ...watcher(),
          name: "reader",
          reactionConfig: { objectTypes: ["Go"], events: ["created"] },
          model: calling(
            {
              tool: "neighbors",
              arguments: { objectId: ids["a"], depth: 2, direction: "out", type: "NEXT" }
            },
            {
              tool: "search_objects",
              arguments: { query: "node d", where: [{ property: "x", op: "exists", value: false }] }
            }
          )
        })
        yield* make(story, "Go")
        const agent = (yield* story.get("/agents")).items[0]
        const [run] = yield* endedRuns(story, agent, 1)
        const [around, found] = yield* callsOf(story, run)
        expect(around.result).toMatchObject({
          objects: [
            { key: "b", distance: 1 },
            { key: "c", distance: 2 }
          ],
          truncated: false
        })
        expect(found.result).toMatchObject({ items: [{ key: "d" }], total: 1 })
        const reads = yield* ask(
          story.access,
          "select reads from kb.tool_calls where run_id = $1 order by id",
          [run.id]
        )
        const read = (...keys: ReadonlyArray<string>) => [
          keys.map((key) => ({ objectId: ids[key], type: "Node", version: 1 }))
        ]
        const ofType = (wanted: string) =>
          reads.map(([seen]) => [(seen as ReadonlyArray<Json>).filter(({ type }) => type === wanted)])
        expect(ofType("Node")).toEqual([read("a", "b", "c"), read("d")])
        // The relationships between them were shown as well.
        expect(ofType("NEXT").map(([seen]) => seen?.length)).toEqual([2, 0])
      })
    )
  })

  describe("Relationships", () => {
    it.effect("are listed by type and by either end", () =>
      Effect.gen(function* () {
        const { story, ids, edges } = yield* chain
        const list = (parameters: Record<string, unknown>) =>
          Effect.map(story.get(`/relationships?${query(parameters)}`), (page) =>
            page.items.map((item: Json) => Object.keys(edges).find((name) => edges[name].id === item.id))
          )
        expect(yield* list({ fromId: ids["a"] })).toEqual(["ae", "ab"])
        expect(yield* list({ toId: ids["a"] })).toEqual(["ca", "fa"])
        expect(yield* list({ objectId: ids["a"], type: "NEXT" })).toEqual(["fa", "ab"])
        expect(yield* list({ objectId: ids["a"] })).toEqual(["ca", "fa", "ae", "ab"])
        expect(yield* list({ objectId: ids["a"], fromId: ids["a"] })).toEqual(["ae", "ab"])
        expect(yield* list({ objectId: ids["a"], fromId: ids["c"] })).toEqual(["ca"])
        expect(yield* list({ objectId: ids["a"], fromId: ids["c"], toId: ids["d"] })).toEqual([])
        expect(yield* list({ fromId: ids["a"], toId: ids["e"] })).toEqual(["ae"])
        expectProblem(yield* story.ask("GET", "/relationships?fromId=7"), 422, "fromId")
      })
    )
  })
})

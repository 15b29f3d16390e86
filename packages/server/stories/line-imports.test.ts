/**
 * Files of lines: imported while they come, line by line, and never a line twice.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { allOf, exported, importLines, jsonl } from "../testing/import-words.ts"
import { type Json, newProject, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const person = (key: string, properties: Record<string, unknown> = {}) => ({
  type: "Person",
  key,
  properties
})
const knows = (from: unknown, to: unknown, properties: Record<string, unknown> = {}) => ({
  relationship: { type: "KNOWS", from, to },
  properties
})
const ada = { type: "Person", key: "ada" }
const grace = { type: "Person", key: "grace" }

/** Whatever an object or a relationship is, without what another project cannot share. */
const withoutIds = (lines: ReadonlyArray<Json>) => lines.map((line) => ({ ...line, id: undefined }))

const last = (lines: ReadonlyArray<Json>): Json => lines.at(-1)

const propertiesByKey = (story: Story) =>
  Effect.map(allOf(story, "/objects"), (objects) =>
    Object.fromEntries(objects.map(({ key, properties, version }) => [key, [properties, version]]))
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("An import of lines", () => {
    it.effect("makes what is new, changes what is different and leaves alone what is so already", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const file = jsonl(
          person("ada", { born: 1815, title: null }),
          "",
          person("grace", { born: 1906 }),
          knows(ada, grace, { since: 1952 }),
          { type: "Note", id: "0190a000-0000-7000-8000-000000000001", properties: { text: "hm" } },
          knows("0190a000-0000-7000-8000-000000000001", ada)
        )
        const told = yield* importLines(story, file)
        expect(told[0]).toEqual({ type: "started", importId: expect.any(String), skippedLines: 0 })
        const counts = {
          created: 3,
          updated: 0,
          unchanged: 0,
          relationshipsCreated: 2,
          relationshipsUpdated: 0,
          relationshipsUnchanged: 0,
          failed: 0
        }
        expect(told.find((line) => line.type === "progress")).toEqual({
          type: "progress",
          done: file.length,
          total: file.length,
          lines: 6,
          counts
        })
        expect(last(told)).toEqual({
          type: "finished",
          importId: told[0].importId,
          lines: 6,
          ...counts,
          deleted: 0,
          relationshipsDeleted: 0
        })
        // Each line is the beginning of a chain of its own.
        const events = yield* feedOf(story, 5)
        expect(events.map((event) => [event.rootEventId, event.depth, event.actorId])).toEqual(
          events.map((event) => [event.id, 0, "admin"])
        )

        const rows = yield* countRows(story)
        expect(last(yield* importLines(story, file))).toMatchObject({
          created: 0,
          unchanged: 3,
          relationshipsCreated: 0,
          relationshipsUnchanged: 2
        })
        expect(yield* countRows(story)).toEqual(rows)

        expect(
          last(
            yield* importLines(
              story,
              jsonl(person("ada", { born: null, field: "logic" }), knows(ada, grace, { since: 1953 }))
            )
          )
        ).toMatchObject({ created: 0, updated: 1, relationshipsUpdated: 1 })
        expect((yield* propertiesByKey(story)).ada).toEqual([{ title: null, field: "logic" }, 2])
      })
    )

    it.effect("tells each bad line with its number and loses no good one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const file = Buffer.concat([
          Buffer.from(
            jsonl(
              person("a"),
              '{"type":"Person","key":"b"',
              { key: "c" },
              { type: "Person", key: "d", colour: "red" },
              '{"type":"Person","key":"e","properties":{"n":9007199254740993}}',
              { type: "Person", key: "f", properties: { text: "\u0000" } },
              knows(ada, { type: "Person", key: "a" }),
              "[1]",
              { type: "Person", key: "g", properties: { long: "x".repeat(300_000) } },
              `{"type":"Person","key":"${"y".repeat(1_100_000)}"}`
            )
          ),
          Buffer.from([0x22, 0xff, 0x22, 0x0a]),
          Buffer.from(jsonl(person("z"), knows({ type: "Person", key: "z" }, { type: "Person", key: "a" })))
        ])
        const told = yield* importLines(story, file)
        expect(
          told.filter((line) => line.type === "badLine").map(({ line, message }) => [line, message])
        ).toEqual([
          [2, expect.any(String)],
          [3, expect.stringMatching(/^\/type: /)],
          [4, expect.stringMatching(/^\/colour: /)],
          [5, expect.stringMatching(/^\/properties\/n: .*\b9007199254740993\b/)],
          [6, expect.stringMatching(/^\/properties\/text: .*U\+0000/)],
          [7, naming("/relationship/from:", "Person", "ada")],
          [8, expect.any(String)],
          [9, expect.stringMatching(/\b262144\b/)],
          [10, expect.stringMatching(/\b1048576\b/)],
          [11, expect.stringContaining("UTF-8")]
        ])
        expect(last(told)).toMatchObject({
          type: "finished",
          lines: 13,
          created: 2,
          relationshipsCreated: 1,
          failed: 10
        })
        expect(Object.keys(yield* propertiesByKey(story)).toSorted()).toEqual(["a", "z"])
        const record = yield* story.get(`/imports/${told[0].importId}`)
        expect(record).toMatchObject({
          status: "finished",
          lines: 13,
          counts: { failed: 10 },
          bytes: file.length
        })
        expect(record.badLines.map((one: Json) => one.line)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
        expect((yield* story.get("/imports")).items).toEqual([record])
      })
    )

    it.effect("tells what of a bad line cannot be kept by escapes, and keeps the good ones beside it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const bad: ReadonlyArray<readonly [string, string]> = [
          ["a\u0000b", "a\\u0000b"],
          ['{"type":"I","\\u0000":1}', "/\\u0000: "],
          ['{"type":"I","\\ud800":1}', "/\\ud800: "],
          ['{"type":"I","properties":{"a\\u0000":1}}', "/properties/a\\u0000: "],
          [`${"a".repeat(39)}😀😀`, "a".repeat(39)],
          [`{"type":"I","${"k".repeat(498)}😀":1}`, `/${"k".repeat(498)}…`]
        ]
        const file = jsonl({ type: "I", key: "before" }, ...bad.map(([line]) => line), {
          type: "I",
          key: "after"
        })
        const told = yield* importLines(story, file)
        expect(
          told.filter((line) => line.type === "badLine").map(({ line, message }) => [line, message])
        ).toEqual(bad.map(([, message], index) => [index + 2, expect.stringContaining(message)]))
        expect(last(told)).toMatchObject({ type: "finished", created: 2, failed: bad.length })
        expect(Object.keys(yield* propertiesByKey(story)).toSorted()).toEqual(["after", "before"])

        const wide = yield* importLines(story, Buffer.from(jsonl({ type: "I", key: "wide" }), "utf16le"))
        expect(last(wide)).toMatchObject({ type: "finished", created: 0, failed: 2 })
        const table = yield* importLines(story, "type,key,a\u0000b\nI,row,1\nI,empty,\n", "?format=csv")
        expect(last(table)).toMatchObject({ type: "finished", created: 1, failed: 1 })
      })
    )

    it.effect("calls an object of another type by the id that the line gives it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const id = "0190a000-0000-7000-8000-000000000001"
        const told = yield* importLines(story, jsonl({ type: "I", id }, { type: "J", id }))
        expect(told.filter((line) => line.type === "badLine")).toEqual([
          {
            type: "badLine",
            line: 2,
            message: naming("/type:", id, "I", "J")
          }
        ])
      })
    )

    it.effect(
      "refuses a line whose id is one object and whose key is another's, in the same batch or later",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const id = "0190a000-0000-7000-8000-000000000001"
          yield* importLines(story, jsonl({ ...person("ada"), id }, person("grace")))
          const told = yield* importLines(
            story,
            jsonl(
              { ...person("bob"), id },
              { ...person("grace", { born: 1906 }), id },
              { type: "Note", id: id.replace("1", "2") },
              { type: "Note", key: "n", id: id.replace("1", "2") },
              { ...person("ada", { born: 1815 }), id }
            )
          )
          expect(told.filter((line) => line.type === "badLine")).toEqual([
            {
              type: "badLine",
              line: 1,
              message: naming("/id:", id, "Person", "bob")
            },
            {
              type: "badLine",
              line: 2,
              message: naming("/id:", id, "Person", "grace")
            },
            {
              type: "badLine",
              line: 4,
              message: naming("/id:", "Note", "n")
            }
          ])
          expect(last(told)).toMatchObject({ type: "finished", created: 1, updated: 1, failed: 3 })
          expect(Object.keys(yield* propertiesByKey(story)).toSorted()).toEqual(["ada", "grace", "null"])
        })
    )

    it.effect("undoes what the graph refuses, alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const large = (name: string) => ({ [name]: "x".repeat(200_000) })
        yield* importLines(
          story,
          jsonl(person("ada", large("first")), person("grace"), knows(ada, grace, large("first")))
        )
        const rows = yield* countRows(story)
        const told = yield* importLines(
          story,
          jsonl(person("ada", large("second")), knows(ada, grace, large("second")), person("bob"))
        )
        expect(told.filter((line) => line.type === "badLine")).toEqual([
          { type: "badLine", line: 1, message: expect.stringMatching(/\b262144\b/) },
          { type: "badLine", line: 2, message: expect.stringMatching(/\b262144\b/) }
        ])
        expect(last(told)).toMatchObject({ created: 1, updated: 0, relationshipsUpdated: 0, failed: 2 })
        const after = yield* countRows(story)
        expect(Object.keys(after).filter((table) => after[table] !== rows[table])).toEqual([
          "graph_objects",
          "graph_object_versions",
          "graph_events"
        ])
      })
    )

    it.effect("tells the first hundred bad lines and counts the others", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const told = yield* importLines(story, "nonsense\n".repeat(250))
        expect(told.filter((line) => line.type === "badLine")).toHaveLength(100)
        expect(last(told)).toMatchObject({ type: "finished", failed: 250, created: 0 })
      })
    )

    it.effect("takes a relationship's ends from earlier lines only, wherever the batches lie", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const told = yield* importLines(
          story,
          jsonl(person("ada"), knows(ada, grace), person("grace"), knows(ada, grace))
        )
        expect(told.filter((line) => line.type === "badLine").map(({ line }) => line)).toEqual([2])
        expect(last(told)).toMatchObject({ created: 2, relationshipsCreated: 1, failed: 1 })
      })
    )
  })

  describe("An export", () => {
    it.effect("is read back by an import of an empty project, and says the same again", () =>
      Effect.gen(function* () {
        const { doors, access } = yield* SharedServer
        const story = yield* newStoryHere
        const note = yield* story.post("/objects", {
          type: "Note",
          properties: { text: 'a\n"b"', gone: null }
        })
        const people = yield* Effect.forEach(["ada", "grace"], (key) =>
          story.post("/objects", person(key, { deep: { a: [1, { b: null }] } }))
        )
        yield* story.post("/relationships", {
          type: "ABOUT",
          fromId: note.id,
          toId: people[0].id,
          properties: { page: 1 }
        })
        yield* story.post("/relationships", { type: "KNOWS", fromId: people[1].id, toId: people[0].id })
        const lines = yield* exported(story)
        expect(lines).toHaveLength(5)
        expect(lines[0]).toEqual({ id: note.id, type: "Note", properties: note.properties })
        expect(lines[3]).toEqual({
          relationship: { type: "ABOUT", from: note.id, to: ada },
          properties: { page: 1 }
        })

        const other = yield* newProject(doors, access)
        expect(last(yield* importLines(other, jsonl(...lines)))).toMatchObject({
          created: 3,
          relationshipsCreated: 2,
          failed: 0
        })
        const again = yield* exported(other)
        const nameless = again[0].id
        expect(nameless).not.toBe(note.id)
        expect(withoutIds(again)).toEqual(
          withoutIds(lines).map((line) => JSON.parse(JSON.stringify(line).replaceAll(note.id, nameless)))
        )
        // Nothing is made twice, here or there, objects without a key included.
        expect(last(yield* importLines(other, jsonl(...lines)))).toMatchObject({
          created: 0,
          unchanged: 3,
          relationshipsUnchanged: 2
        })
        expect(last(yield* importLines(story, jsonl(...lines)))).toMatchObject({
          created: 0,
          unchanged: 3,
          relationshipsUnchanged: 2
        })
      })
    )

    it.effect("holds only the types it is asked for, and the relationships between them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLines(
          story,
          jsonl(
            person("ada"),
            person("grace"),
            { type: "Note", key: "n" },
            knows(ada, grace),
            knows({ type: "Note", key: "n" }, ada)
          )
        )
        const lines = yield* exported(story, "?types=Person,Place")
        expect(lines).toEqual([person("ada"), person("grace"), knows(ada, grace)])
        expectProblem(yield* story.ask("GET", "/export?types=,"), 422, "types")
      })
    )

    it.effect("shows the graph as it was at a time", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLines(story, jsonl(person("ada", { born: 1 }), person("grace"), knows(ada, grace)))
        const { createdAt } = (yield* feedOf(story, 3)).at(-1)
        yield* importLines(story, jsonl(person("ada", { born: 1815 }), person("later")))
        const [, second] = yield* allOf(story, "/objects")
        yield* story.delete(`/objects/${second.id}`)
        expect(second.key).toBe("grace")
        expect(yield* exported(story, `?asOf=${createdAt}`)).toEqual([
          person("ada", { born: 1 }),
          person("grace"),
          knows(ada, grace)
        ])
        expect(yield* exported(story)).toHaveLength(2)
        expectProblem(yield* story.ask("GET", "/export?asOf=yesterday"), 422, "asOf")
      })
    )

    it.effect("says about how many lines will come", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLines(story, jsonl(person("ada"), person("grace"), knows(ada, grace)))
        const answer = yield* story.ask("GET", "/export")
        expect(answer.headers.get("content-type")).toBe("application/x-ndjson")
        expect([answer.headers.get("tropism-objects"), answer.headers.get("tropism-relationships")]).toEqual([
          "2",
          "1"
        ])
      })
    )
  })
})

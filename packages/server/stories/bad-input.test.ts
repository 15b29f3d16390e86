/**
 * Values that the graph keeps, and those that it refuses because it could not keep them.
 *
 * Every refusal is one sentence and a pointer, and leaves nothing behind; every
 * value that is accepted reads back equal.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { deliver, listenerWithHook } from "../testing/delivery-words.ts"
import { allOf, importLines } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTier } from "../testing/tier.ts"
import { endedRuns } from "../testing/story-words.ts"

/** The text of an object whose properties are given as text. */
const objectText = (properties: string): string => `{"type":"Thing","properties":${properties}}`

const send = (story: Story, properties: string) => story.ask("POST", "/objects", objectText(properties))

/** Objects inside objects, the outermost counted as 1. */
const nested = (depth: number): string => `${`{"a":`.repeat(depth)}1${"}".repeat(depth)}`

const manyKeys = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index])))

/** Properties that the graph refuses, with the place that is wrong. */
const refused: ReadonlyArray<readonly [string, string, string]> = [
  ["an integer beyond 2^53−1", `{"a":[0,9007199254740993]}`, "/properties/a/1"],
  ["2^53 itself, to which others are rounded", `{"a":9007199254740992}`, "/properties/a"],
  ["a negative integer beyond −(2^53−1)", `{"a":-9007199254740993}`, "/properties/a"],
  ["a number that overflows", `{"a":{"b":1e400}}`, "/properties/a/b"],
  ["a number that would become 0", `{"a":{"b":-1e-400}}`, "/properties/a/b"],
  ["NUL in a text", `{"a":"x\\u0000y"}`, "/properties/a"],
  ["NUL in a key", `{"x\\u0000y":1}`, "/properties/x\u0000y"],
  ["a lone high surrogate", `{"a":"\\ud800"}`, "/properties/a"],
  ["a lone low surrogate in a list", `{"a":["ok","\\udc00"]}`, "/properties/a/1"],
  ["a lone surrogate in a key", `{"a":{"\\udfff":1}}`, "/properties/a/\udfff"],
  ["the key __proto__", `{"__proto__":{"isAdmin":true}}`, "/properties/__proto__"],
  ["the key __proto__ further in", `{"a":[{"__proto__":null}]}`, "/properties/a/0/__proto__"],
  ["the key constructor", `{"constructor":{"prototype":1}}`, "/properties/constructor"],
  ["the key prototype", `{"prototype":1}`, "/properties/prototype"],
  ["depth 65", nested(65), `/properties${"/a".repeat(64)}`],
  ["depth 100,000", nested(100_000), `/properties${"/a".repeat(67)}`],
  ["lists 65 deep", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, `/properties/a${"/0".repeat(63)}`],
  ["1,001 keys", manyKeys(1_001), "/properties"],
  ["1,001 keys further in", `{"a":${manyKeys(1_001)}}`, "/properties/a"],
  ["more than 256 KiB", JSON.stringify({ a: "x".repeat(262_144) }), "/properties"],
  [
    "more than 256 KiB in UTF-8, though not in characters",
    JSON.stringify({ a: "é".repeat(131_100) }),
    "/properties"
  ]
]

/** Properties that the graph keeps; the last column is what is read back where the text does not say it. */
const kept: ReadonlyArray<readonly [string, string, unknown?]> = [
  ["depth 63", nested(63)],
  ["depth 64", nested(64)],
  ["2^53−1 and −(2^53−1)", `{"a":[9007199254740991,-9007199254740991]}`],
  ["1.0e28, written as a number that is no integer's spelling", `{"a":1.0e28}`, { a: 1e28 }],
  ["the largest and the smallest number", `{"a":[1.7976931348623157e308,5e-324]}`],
  ["0.1 and 1/3, digit for digit", `{"a":[0.1,0.3333333333333333]}`],
  ["−0, which is 0", `{"a":-0,"b":[-0.0]}`, { a: 0, b: [0] }],
  ["1,000 keys", manyKeys(1_000)],
  ["exactly 256 KiB", JSON.stringify({ a: "x".repeat(262_144 - 8) })],
  ["emoji, with modifiers and joiners", JSON.stringify({ "👩🏽‍🚀": "🏳️‍🌈🇩🇪 \u{10ffff}" })],
  ["right-to-left text and its marks", JSON.stringify({ שלום: "مرحبا \u202eעולם\u202c \u200f" })],
  ["composed and decomposed letters apart", JSON.stringify({ é: 1, "e\u0301": 2 })],
  [
    "control characters and a byte order mark inside",
    JSON.stringify({ a: "\u0001\b\t\n\u001f\u007f\ufeff\u2028" })
  ],
  ["noncharacters and the replacement character", JSON.stringify({ a: "\uffff\ufffe\ufffd" })],
  ["a key that stands twice, of which the last one counts", `{"a":1,"b":2,"a":3,"c":1,"\\u0063":4}`],
  ["empty keys further in, texts, lists, objects and null", `{"a":[],"b":{},"c":null,"d":{"":""}}`],
  ["keys that look like pointers and paths", `{"a/b":{"~":1},"$.x":2,"toString":3,"hasOwnProperty":4}`]
]

const badFragments = [
  "9007199254740993",
  "1e400",
  "-1e309",
  "1e-400",
  '"\\u0000"',
  '"\\ud83d"',
  '{"__proto__":1}'
] as const
const fragments = [
  ...badFragments,
  "-0",
  "5e-324",
  "9007199254740991",
  '"\\ud83d\\ude00"',
  '"😀"',
  "[[]]",
  '{"":null}',
  "true"
] as const

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A value that could not be read back equal is refused", () => {
    it.effect.each(refused)("with a pointer: %s", ([, properties, pointer]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const before = yield* countRows(story)
        expectProblem(yield* send(story, properties), 422, pointer)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("also where it would come in by an update, and the object stays as it was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const before = yield* story.post("/objects", { type: "Thing", properties: { kept: true } })
        for (const [, properties, pointer] of refused) {
          const answer = yield* story.ask("PATCH", `/objects/${before.id}`, `{"properties":${properties}}`)
          expectProblem(answer, 422, pointer)
        }
        expect(yield* story.get(`/objects/${before.id}`)).toEqual(before)
        expect((yield* story.get(`/objects/${before.id}/history`)).items).toHaveLength(1)
      })
    )

    it.effect("also where many small updates add up to more than an object may hold", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const object = yield* story.post("/objects", {
          type: "Thing",
          properties: { a: "x".repeat(200_000) }
        })
        const answer = yield* story.ask("PATCH", `/objects/${object.id}`, {
          properties: { b: "y".repeat(100_000) }
        })
        expectProblem(answer, 422, "/properties")
        const deep = JSON.parse(nested(63))
        yield* story.patch(`/objects/${object.id}`, { properties: { deep } })
        expectProblem(
          yield* story.ask("PATCH", `/objects/${object.id}`, { properties: { deep: { a: { b: deep } } } }),
          422
        )
        expect((yield* story.get(`/objects/${object.id}`)).version).toBe(2)
      })
    )

    it.effect("also in the properties of a relationship and in a key", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const from = yield* story.post("/objects", { type: "Thing" })
        const to = yield* story.post("/objects", { type: "Thing" })
        const before = yield* countRows(story)
        const relate = (properties: string) =>
          story.ask(
            "POST",
            "/relationships",
            `{"type":"NEAR","fromId":"${from.id}","toId":"${to.id}","properties":${properties}}`
          )
        expectProblem(yield* relate(`{"a":"\\u0000"}`), 422, "/properties/a")
        expectProblem(yield* relate(`{"a":9007199254740993}`), 422, "/properties/a")
        expectProblem(yield* story.ask("POST", "/objects", `{"type":"Thing","key":"a\\u0000b"}`), 422, "/key")
        expectProblem(yield* story.ask("POST", "/objects", `{"type":"Thing","key":"\\udfff"}`), 422, "/key")
        expect(yield* countRows(story)).toEqual(before)
      })
    )
  })

  describe("A property without a name is refused", () => {
    it.effect("of an object, of a relationship and in a line of an import", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [from, to] = [
          yield* story.post("/objects", { type: "Thing", properties: { kept: true } }),
          yield* story.post("/objects", { type: "Thing" })
        ]
        const before = yield* countRows(story)
        const ends = { type: "NEAR", fromId: from.id, toId: to.id }
        for (const value of [1, null])
          for (const answer of [
            yield* story.ask("POST", "/objects", { type: "Thing", properties: { "": value } }),
            yield* story.ask("POST", "/relationships", { ...ends, properties: { "": value } })
          ])
            expectProblem(answer, 422, "/properties")
        expectProblem(
          yield* story.ask("PATCH", `/objects/${from.id}`, { properties: { "": 1, a: 1 } }),
          422,
          "/properties"
        )
        expect(yield* countRows(story)).toEqual(before)
        const told = yield* importLines(story, `${objectText('{"":1}')}\n${objectText('{"a":1}')}\n`)
        expect(told.flatMap(({ line, type }) => (type === "badLine" ? [line] : []))).toEqual([1])
      })
    )

    it.effect(
      "and one that came in before is read, stays beside what is written, and can be taken away",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const object = yield* story.post("/objects", { type: "Thing", properties: { a: 1 } })
          yield* ask(
            story.access,
            `update kb.graph_objects set properties = properties || '{"": 1}' where id = $1`,
            [object.id]
          )
          const written = yield* story.patch(`/objects/${object.id}`, { properties: { a: 2 } })
          expect(written.properties).toEqual({ "": 1, a: 2 })
          const mended = yield* story.patch(`/objects/${object.id}`, { properties: { "": null } })
          expect(mended.properties).toEqual({ a: 2 })
        })
    )
  })

  describe("A line of an import and a webhook's delivery", () => {
    it.effect(
      "a line whose value could not be kept is told, and the lines beside it are kept as they are",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const line = (key: string, properties: string) =>
            `{"type":"Thing","key":"${key}","properties":${properties}}\n`
          // A line has to say each key once.
          const good = kept.filter(([name]) => !name.includes("stands twice"))
          const pairs = refused.map(
            ([, properties], index) =>
              line(`bad-${index}`, properties) + line(`good-${index}`, `{"n":${index}}`)
          )
          const file =
            pairs.join("") + good.map(([, properties], index) => line(`kept-${index}`, properties)).join("")
          const told = yield* importLines(story, file)
          const bad = told.filter(({ type }) => type === "badLine")
          expect(bad.map(({ line: number }) => number)).toEqual(refused.map((_, index) => 2 * index + 1))
          const places = refused.map(([, , pointer]) =>
            pointer.slice(0, 40).replace(/[\0\ud800-\udfff].*$/u, "")
          )
          expect(bad.map(({ message }, index) => message.includes(places[index]))).toEqual(
            refused.map(() => true)
          )
          const objects = new Map(
            (yield* allOf(story, "/objects")).map(({ key, properties }) => [key, properties])
          )
          expect(objects.size).toBe(refused.length + good.length)
          for (const [index, [, properties, expected]] of good.entries())
            expect(objects.get(`kept-${index}`)).toStrictEqual(expected ?? JSON.parse(properties))
        })
    )

    it.effect("a delivery whose value could not be kept is refused with its place and begins no run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        // The body is the value here, and may be as large as a body may be.
        const values = refused.filter(([name]) => !name.includes("256 KiB"))
        for (const [name, properties, pointer] of values) {
          const answer = yield* deliver(story, hook, properties, { id: `bad-${crypto.randomUUID()}` })
          const place = pointer.replace("/properties", "")
          expect([name, answer.status, answer.body.errors?.[0]?.pointer]).toEqual([
            name,
            422,
            place.length > 100 ? expect.any(String) : place
          ])
        }
        const good = kept.filter(([name]) => !name.includes("stands twice"))
        for (const [index, [, properties]] of good.entries())
          expect((yield* deliver(story, hook, properties, { id: `kept-${index}` })).status).toBe(202)
        const runs = yield* endedRuns(story, agent, good.length)
        expect(runs.map(({ trigger }) => trigger.input)).toStrictEqual(
          good.map(([, properties, expected]) => expected ?? JSON.parse(properties))
        )
      })
    )
  })

  describe("An accepted value reads back equal", () => {
    it.effect.each(kept)("%s", ([, properties, expected]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const made = yield* send(story, properties)
        expect([made.status, made.body]).toEqual([201, expect.anything()])
        const value = expected ?? JSON.parse(properties)
        expect(made.body.properties).toStrictEqual(value)
        expect((yield* story.get(`/objects/${made.body.id}`)).properties).toStrictEqual(value)
        const history = yield* story.get(`/objects/${made.body.id}/history`)
        expect(history.items[0].properties).toStrictEqual(value)
        // Writing what was read changes nothing.
        const again = yield* story.patch(`/objects/${made.body.id}`, { properties: made.body.properties })
        expect(again.version).toBe(Object.values(made.body.properties).includes(null) ? 2 : 1)
      })
    )

    it.effect("keys of 500 characters, and types of 100", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const key of [
          "🦊".repeat(250),
          "ключ/с пробелом:1",
          "node_modules/@effect/vitest",
          "a".repeat(500)
        ]) {
          const made = yield* story.post("/objects", { type: "T".repeat(100), key })
          expect((yield* story.get(`/objects?key=${encodeURIComponent(key)}`)).items).toEqual([made])
          expect(made.key).toBe(key)
        }
      })
    )

    it.effect.prop(
      "whatever JSON is sent: it reads back equal, or is refused with a pointer and leaves nothing",
      [Arbitrary.schema(Schema.Record(Schema.String, Schema.Json))],
      ([properties]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const text = JSON.stringify(properties)
          const answer = yield* send(story, text)
          if (answer.status === 201) {
            const read = yield* story.get(`/objects/${answer.body.id}`)
            expect(read.properties).toStrictEqual(JSON.parse(text))
          } else {
            expectProblem(answer, 422)
            expect(answer.body.errors[0].pointer).toMatch(/^\/properties/)
            expect((yield* story.get("/events")).items).toEqual([])
          }
        }),
      { arbitrary: { runs: inTier(50, 100, 100), size: 12 } }
    )

    it.effect.prop(
      "whatever is put together of good and bad values: one bad one is enough, and its place is told",
      [Arbitrary.array(Arbitrary.schema(Schema.Literals(fragments)), { minLength: 1, maxLength: 8 })],
      ([values]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const text = `{"list":[${values.join(",")}]}`
          const answer = yield* send(story, text)
          const badAt = values.findIndex((value) => badFragments.some((bad) => bad === value))
          if (badAt === -1) {
            expect(answer.body.properties).toStrictEqual(JSON.parse(text.replaceAll("-0", "0")))
          } else {
            expectProblem(answer, 422)
            expect(answer.body.errors[0].pointer).toMatch(/^\/properties\/list\/\d/)
            expect((yield* story.get("/events")).items).toEqual([])
          }
        }),
      { arbitrary: { runs: inTier(30, 60, 60) } }
    )
  })
})

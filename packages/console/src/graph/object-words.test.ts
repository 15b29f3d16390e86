/**
 * What an object is called, who made what of it, and where two versions differ.
 */
import { ObjectId } from "@tropism/domain/ids"
import { Result, type Schema } from "effect"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import { objectName } from "../words/object-name.ts"
import { editableText, makerText, propertiesText, writtenProperties, writtenValue } from "./object-words.ts"

const id = ObjectId.make("0198c0de-0000-7000-8000-00000000beef")

it("calls an object by its key, by a name it has, else by the end of its id", () => {
  expect(objectName({ id, key: "ada", properties: { name: "Ada" } })).toBe("ada")
  expect(objectName({ id, key: null, properties: { title: "Notes", name: " " } })).toBe("Notes")
  expect(objectName({ id, key: null, properties: { name: 7 } })).toBe("…0000beef")
})

it("says a few properties of an object in words, without the one that is its name", () => {
  const said = (properties: Record<string, Schema.Json>, key: string | null = null) =>
    propertiesText({ id, key, properties })
  expectOneSentencePerKind({ none: [said({})], noOthers: [said({ name: "Ada" }), said({ name: "Bob" })] })
  expect(said({ name: "Ada", age: 36 }, "ada")).toBe("name Ada, age 36")
  expect(said({ age: 36, tags: ["a", 1], home: { city: "B" }, isGone: false, since: null })).toMatch(
    /^age 36, tags 2 \w+, home 1 \w+, isGone \w+\b.* 1\b/
  )
  expect(said({ since: null, about: "x".repeat(90), odd: "a\nb", none: [] })).toMatch(
    new RegExp(`^since \\w+, about ${"x".repeat(60)}…, odd a…, none 0 \\w+$`)
  )
})

it("says who made something and who approved it", () => {
  expect(makerText({ actorType: "user", actorId: "ada" })).toBe("ada")
  expectOneSentencePerKind({
    server: [makerText({ actorType: "system", actorId: null })],
    unknownPerson: [makerText({ actorType: "user", actorId: null })],
    unknownAgent: [makerText({ actorType: "agent", actorId: id })]
  })
  const tidy = { actorType: "agent", actorId: id, agentName: "tidy", approvedBy: "ada" } as const
  expect(makerText(tidy)).toMatch(/\btidy\b.*\bada$/)
})

it("reads what was written as text or as JSON, and gives back what it was given", () => {
  expect(writtenValue("7", "text")).toEqual(Result.succeed("7"))
  expect(writtenValue("7", "json")).toEqual(Result.succeed(7))
  expect(Result.isFailure(writtenValue("{", "json"))).toBe(true)
  const value = [1, { a: null }]
  expect(writtenValue(editableText(value, "json"), "json")).toEqual(Result.succeed(value))
  expect(editableText("a\nb", "text")).toBe("a\nb")
})

it.each([
  ["[1]", ""],
  ['{"a": 1, "a": 2}', "a: "],
  ['{"a": {"b": [7, 9007199254740993]}}', "a › b › 1: "],
  ['{"a": 1e999}', "a: "],
  ['{"a": "\\u0000"}', "U+0000"],
  ['{"a/b": {"__proto__": 1}}', "a/b › __proto__: "],
  [`{"a": "${"x".repeat(300_000)}"}`, "300008"]
])("says where and why an object cannot have the properties %.40s", (text, known) => {
  expect(Result.getFailure(writtenProperties(text))).toMatchObject({
    value: expect.stringContaining(known)
  })
})

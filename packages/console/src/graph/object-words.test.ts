/**
 * What an object is called, who made what of it, and where two versions differ.
 */
import { ObjectId } from "@tropism/domain/ids"
import { Result, type Schema } from "effect"
import { expect, it } from "vitest"
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
  expect(said({})).toBe("no properties")
  expect(said({ name: "Ada" })).toBe("no other properties")
  expect(said({ name: "Ada", age: 36 }, "ada")).toBe("name Ada, age 36")
  expect(said({ age: 36, tags: ["a", 1], home: { city: "B" }, isGone: false, since: null })).toBe(
    "age 36, tags 2 entries, home 1 property, isGone no and 1 more"
  )
  expect(said({ since: null, about: "x".repeat(90), odd: "a\nb", none: [] })).toBe(
    `since nothing, about ${"x".repeat(60)}…, odd a…, none 0 entries`
  )
})

it("says who made something and who approved it", () => {
  expect(makerText({ actorType: "user", actorId: "ada" })).toBe("ada")
  expect(makerText({ actorType: "system", actorId: null })).toBe("the server")
  const tidy = { actorType: "agent", actorId: id, agentName: "tidy", approvedBy: "ada" } as const
  expect(makerText(tidy)).toBe("the agent tidy, approved by ada")
})

it("reads what was written as text or as JSON, and gives back what it was given", () => {
  expect(writtenValue("7", "text")).toEqual(Result.succeed("7"))
  expect(writtenValue("7", "json")).toEqual(Result.succeed(7))
  expect(writtenValue("{", "json")).toEqual(Result.fail("This is no JSON."))
  const value = [1, { a: null }]
  expect(writtenValue(editableText(value, "json"), "json")).toEqual(Result.succeed(value))
  expect(editableText("a\nb", "text")).toBe("a\nb")
})

it.each([
  ["[1]", "These are no properties"],
  ['{"a": 1, "a": 2}', "a: The key stands twice"],
  ['{"a": {"b": [7, 9007199254740993]}}', "a › b › 1: "],
  ['{"a": 1e999}', "a: "],
  ['{"a": "\\u0000"}', "a: Text must not contain the character U+0000"],
  ['{"a/b": {"__proto__": 1}}', "a/b › __proto__: "],
  [`{"a": "${"x".repeat(300_000)}"}`, "Properties must not exceed"]
])("says why an object cannot have the properties %.40s", (text, sentence) => {
  expect(Result.getFailure(writtenProperties(text))).toMatchObject({
    value: expect.stringContaining(sentence)
  })
})

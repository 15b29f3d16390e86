/**
 * What an object is called, who made what of it, and where two versions differ.
 */
import { ObjectId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { objectName } from "../words/object-name.ts"
import { editableText, makerText, writtenValue } from "./object-words.ts"

const id = ObjectId.make("0198c0de-0000-7000-8000-00000000beef")

it("calls an object by its key, by a name it has, else by the end of its id", () => {
  expect(objectName({ id, key: "ada", properties: { name: "Ada" } })).toBe("ada")
  expect(objectName({ id, key: null, properties: { title: "Notes", name: " " } })).toBe("Notes")
  expect(objectName({ id, key: null, properties: { name: 7 } })).toBe("…0000beef")
})

it("says who made something and who approved it", () => {
  expect(makerText({ actorType: "user", actorId: "ada" })).toBe("ada")
  expect(makerText({ actorType: "system", actorId: null })).toBe("the server")
  const tidy = { actorType: "agent", actorId: id, agentName: "tidy", approvedBy: "ada" } as const
  expect(makerText(tidy)).toBe("the agent tidy, approved by ada")
})

it("reads what was written as text or as JSON, and gives back what it was given", () => {
  expect(writtenValue("7", "text")).toEqual({ value: "7" })
  expect(writtenValue("7", "json")).toEqual({ value: 7 })
  expect(writtenValue("{", "json")).toBeUndefined()
  expect(writtenValue(editableText([1, { a: null }], "json"), "json")).toEqual({ value: [1, { a: null }] })
  expect(editableText("a\nb", "text")).toBe("a\nb")
})

/**
 * What a person types is what is approved, and nothing changes its kind on the way.
 */
import { expect, it } from "@effect/vitest"
import type { ObjectId } from "@tropism/domain/ids"
import { differentFields, editedFields, type EditField, editFields, refinedFields } from "./edit-fields.ts"

const objectId = "0190a000-0000-7000-8000-000000000001" as ObjectId

const fieldsOf = (data: Record<string, string | number | null>): ReadonlyArray<EditField> =>
  editFields({ type: "update", objectId, data }) ?? []

it("unedited they say what was suggested", () => {
  const data = { name: "007", age: 7, old: null }
  expect(editedFields(fieldsOf(data))).toEqual({ data, faults: [] })
  expect(fieldsOf(data).map(({ kind }) => kind)).toEqual(["text", "json", "removal"])
})

it("a text stays a text, everything else is JSON, and what is no JSON is named", () => {
  const typed = fieldsOf({ name: "a", age: 7, size: 1 }).map((field, index) => ({
    ...field,
    text: ["true", '{"years": 8}', "eight"][index] ?? ""
  }))
  expect(editedFields(typed)).toEqual({ data: { name: "true", age: { years: 8 } }, faults: ["size"] })
})

it("what is left out is not written, even where it holds no JSON", () => {
  const left = fieldsOf({ name: "a", age: 7 }).map((field) =>
    field.name === "age" ? { ...field, text: "eight", isTaken: false } : field
  )
  expect(editedFields(left)).toEqual({ data: { name: "a" }, faults: [] })
})

it("a name like __proto__ stays a property, and a deletion has none to edit", () => {
  const change = {
    type: "create",
    objectType: "Note",
    key: null,
    data: JSON.parse('{"__proto__": "x"}')
  } as const
  expect(Object.keys(editedFields(editFields(change) ?? []).data)).toEqual(["__proto__"])
  expect(editFields({ type: "delete", objectId })).toBeUndefined()
})

it("of a refined suggestion the fields that nobody changed say what is suggested now, and the others what was typed", () => {
  const before = fieldsOf({ name: "Ada", age: 7, size: 1, town: "Ulm" })
  const now = fieldsOf({ name: "Ada L.", age: 8, colour: "red" })
  const mine = before.map((field) =>
    field.name === "age" || field.name === "town" ? { ...field, text: "9" } : field
  )
  const refined = refinedFields(mine, before, now)
  expect(editedFields(refined).data).toEqual({ name: "Ada L.", age: 9, colour: "red", town: "9" })
  expect(differentFields(before, now).map(({ name }) => name)).toEqual(["name", "age", "colour"])
})

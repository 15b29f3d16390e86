/**
 * Conditions on properties as a form holds them: a property, an operator and a value in text.
 *
 * Pure. A value is JSON where it reads as JSON, else a text, so `5` is a number
 * and `"5"` a text; what is written of a value reads back as that value.
 */
import type { FilterOperator, PropertyFilter } from "@tropism/domain/property-filter"
import { Option, Schema } from "effect"

export interface ConditionRow {
  readonly property: string
  readonly op: FilterOperator
  readonly value: string
}

/** Each operator as a person reads it. */
export const operatorNames: ReadonlyArray<{ readonly value: FilterOperator; readonly label: string }> = [
  { value: "eq", label: "is" },
  { value: "ne", label: "is not" },
  { value: "in", label: "is one of" },
  { value: "gt", label: "is greater than" },
  { value: "gte", label: "is at least" },
  { value: "lt", label: "is less than" },
  { value: "lte", label: "is at most" },
  { value: "contains", label: "contains" },
  { value: "startsWith", label: "starts with" },
  { value: "exists", label: "exists" }
]

export const emptyRow: ConditionRow = { property: "", op: "eq", value: "" }

export const rowOf = ({ property, op, value }: PropertyFilter): ConditionRow => ({
  property,
  op,
  value: textOfValue(value)
})

/** A condition as it is sent; the server judges it. */
export const filterOf = ({ property, op, value }: ConditionRow) => ({
  property,
  op,
  value: op === "in" ? choicesOf(value) : valueOfText(value)
})

const readJson = Option.liftThrowable((text: string): Schema.Json => JSON.parse(text))

const valueOfText = (text: string): Schema.Json => Option.getOrElse(readJson(text), () => text)

/** A text stands as it is, unless it would be read as something else. */
const textOfValue = (value: Schema.Json): string =>
  typeof value === "string" && valueOfText(value) === value && !/[\r\n]/.test(value)
    ? value
    : JSON.stringify(value)

/** A list in JSON, or values parted by commas. */
const choicesOf = (text: string): Schema.Json => {
  const read = Option.getOrUndefined(readJson(text))
  if (Array.isArray(read)) return read
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(valueOfText)
}

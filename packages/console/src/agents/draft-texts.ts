/**
 * Texts of a form, and the fields of a definition that they say.
 *
 * Pure. What is empty is not sent, so that it goes back to its default.
 */
import { isJsonObject, type JsonFault } from "@tropism/domain/json"
import { Result } from "effect"
import { numberSent } from "../words/number-sent.ts"

/** A definition, or a part of one, as it is sent; the server judges it, not the form. */
export type Sent = Readonly<Record<string, unknown>>

/** What cannot be sent, with its place in what would be. */
export type DraftFault = JsonFault

/** The parts of a list that is written with commas or lines. */
export const partsOf = (text: string, ends = /[,\n]/): ReadonlyArray<string> =>
  text
    .split(ends)
    .map((part) => part.trim())
    .filter((part) => part !== "")

export const given = (field: string, text: string): Sent => (text.trim() === "" ? {} : { [field]: text })

/** What is no number is sent as it was written, and the server says what is wrong with it. */
export const numberGiven = (field: string, text: string): Sent =>
  text.trim() === "" ? {} : { [field]: numberSent(text) }

/** The parts of a list, where it has any. */
export const listGiven = (field: string, text: string): Sent => {
  const parts = partsOf(text)
  return parts.length === 0 ? {} : { [field]: parts }
}

/** A group of fields, where any of them is given. */
export const within = (field: string, fields: Sent): Sent =>
  Object.keys(fields).length === 0 ? {} : { [field]: fields }

export const numberText = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : String(value)

export const jsonText = (value: object | null | undefined): string =>
  value === null || value === undefined ? "" : JSON.stringify(value, null, 2)

/** An object that is written as JSON, where anything is written. */
export const objectGiven = (
  field: string,
  text: string,
  pointer: string,
  example: string
): Result.Result<Sent, DraftFault> => {
  if (text.trim() === "") return Result.succeed({})
  return Result.try((): unknown => JSON.parse(text)).pipe(
    Result.filterOrFail(isJsonObject, () => undefined),
    Result.mapBoth({
      onSuccess: (value): Sent => ({ [field]: value }),
      onFailure: (): DraftFault => ({
        pointer,
        message: `Invalid JSON. Expected an object, e.g. ${example}.`
      })
    })
  )
}

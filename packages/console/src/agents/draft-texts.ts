/**
 * Texts of a form, and the fields of a definition that they say.
 *
 * Pure. What is empty is not sent, so that it goes back to its default.
 */

/** A definition, or a part of one, as it is sent; the server judges it, not the form. */
export type Sent = Readonly<Record<string, unknown>>

/** The parts of a list that is written with commas or lines. */
export const partsOf = (text: string, ends = /[,\n]/): ReadonlyArray<string> =>
  text
    .split(ends)
    .map((part) => part.trim())
    .filter((part) => part !== "")

export const given = (field: string, text: string): Sent => (text.trim() === "" ? {} : { [field]: text })

/** What is no number is sent as it was written, and the server says what is wrong with it. */
export const numberGiven = (field: string, text: string): Sent => {
  if (text.trim() === "") return {}
  const number = Number(text)
  return { [field]: Number.isFinite(number) ? number : text }
}

/** A group of fields, where any of them is given. */
export const within = (field: string, fields: Sent): Sent =>
  Object.keys(fields).length === 0 ? {} : { [field]: fields }

export const numberText = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : String(value)

export const jsonText = (value: object): string =>
  Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2)

/**
 * How large a JSON value is where it is kept.
 *
 * PostgreSQL keeps each number with all its digits and writes no exponent:
 * `5e-324` has six characters in a request and 326 in every row, dump and answer
 * of the database that it gets into. So whatever comes in from outside is
 * measured as it will come out.
 */

/** How many characters of JSON text a value has with its numbers written out; an undefined one has none. */
export const keptChars = (value: unknown): number => {
  const text = textOf(value)
  return text.length + grown(text, value)
}

/** The same in UTF-8 bytes. */
export const keptBytes = (value: unknown): number => {
  const text = textOf(value)
  return encoder.encode(text).length + grown(text, value)
}

/** What is said beside a size that is more than what was sent; nothing where it is the same. */
export const growthNote = (value: unknown): string =>
  grown(textOf(value), value) > 0
    ? ". A number is kept with all its digits, 5e-324 with 326 characters: send such numbers as text"
    : ""

const textOf = (value: unknown): string => JSON.stringify(value) ?? ""

const encoder = new TextEncoder()

/** How much longer a value is with its numbers written out. Only where its text looks like it are they sought. */
const grown = (text: string, value: unknown): number => {
  if (!/\de[+-]\d/.test(text)) return 0
  const waiting: Array<unknown> = [value]
  let chars = 0
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === "number") chars += numberGrowth(String(next))
    else if (typeof next === "object" && next !== null)
      for (const item of Object.values(next)) waiting.push(item)
  }
  return chars
}

/** How many characters more a number has without its exponent: `1e+21` has 17, `1.5e-7` has 4. */
const numberGrowth = (text: string): number => {
  const [written, fraction = "", exponent] = /\d(?:\.(\d+))?e([+-]\d+)$/.exec(text) ?? []
  if (written === undefined) return 0
  const power = Number(exponent)
  const digits = 1 + fraction.length
  const plain = power > 0 ? Math.max(power + 1, digits) : digits + 1 - power
  return plain - written.length
}

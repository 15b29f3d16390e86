/**
 * Judges JSON as text, before anything decodes it.
 *
 * A decoder rounds 2^53+1, makes 0 of 1e-400, drops the first of two equal settings
 * and overflows on a hundred thousand brackets, so all of it must be seen in the text. One pass,
 * no recursion, no value is built: the caller decodes afterwards and then knows
 * the value is what was sent. Syntax errors are left to the decoder.
 */
import { type JsonFault, jsonBounds, pointerStep } from "./json.ts"

interface Frame {
  readonly kind: "object" | "array"
  readonly keys: Set<string>
  index: number
  /** As written: only a pointer shows it, so an escape stays an escape. */
  key: string
}

const numberPattern = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y

/** The depth a whole request body may have: its own braces around an object of the deepest kind. */
const maxTextDepth = jsonBounds.maxDepth + 4

/** What is said of a key that a decoder would silently drop. */
export const keyTwice = "The key stands twice in one JSON object: keep one of the two"

/** Finds the first number, key or nesting of a JSON text that would not be read back equal. */
export const scanJson = (text: string, maxKeys: number = jsonBounds.maxKeys): JsonFault | undefined => {
  const frames: Array<Frame> = []
  const pointer = () =>
    frames.map((frame) => pointerStep(frame.kind === "array" ? frame.index : frame.key)).join("")
  let position = 0
  while (position < text.length) {
    const char = text[position]
    const top = frames.at(-1)
    if (char === '"') {
      const end = endOfString(text, position)
      if (end === undefined) return undefined
      if (top?.kind === "object" && isKey(text, end)) {
        top.key = text.slice(position + 1, end - 1)
        const key = unescaped(top.key)
        if (top.keys.has(key) && !isGiven(frames))
          return {
            pointer: pointer(),
            message: keyTwice
          }
        top.keys.add(key)
        if (top.keys.size > maxKeys * 2)
          return {
            pointer: pointer(),
            message: `A JSON object must not have more than ${maxKeys} keys`
          }
      }
      position = end
      continue
    }
    if (char === "{" || char === "[") {
      if (frames.length === maxTextDepth)
        return { pointer: pointer(), message: `JSON must not be nested deeper than ${jsonBounds.maxDepth}` }
      frames.push({ kind: char === "{" ? "object" : "array", keys: new Set(), index: 0, key: "" })
    } else if (char === "}" || char === "]") frames.pop()
    else if (char === "," && top?.kind === "array") top.index += 1
    else if (char === "-" || (char !== undefined && char >= "0" && char <= "9")) {
      numberPattern.lastIndex = position
      const match = numberPattern.exec(text)
      if (match) {
        const message = numberTextFault(match)
        if (message) return { pointer: pointer(), message }
        position = numberPattern.lastIndex
        continue
      }
    }
    position += 1
  }
  return undefined
}

/** Whether a JSON text has a number with an exponent: it is kept without, and may be much longer then than it is here. */
export const hasExponent = (text: string): boolean => {
  if (!/\d[eE][+-]?\d/.test(text)) return false
  let from: number | undefined = 0
  while (from !== undefined) {
    const quote: number = text.indexOf('"', from)
    if (/\d[eE]/.test(text.slice(from, quote === -1 ? undefined : quote))) return true
    from = quote === -1 ? undefined : endOfString(text, quote)
  }
  return false
}

/**
 * Whether a place lies in the properties that somebody gives an object or a relationship.
 *
 * **Details** They are any JSON, and JSON lets a key stand twice: the last one counts, as for every reader of JSON. The
 * contract's own fields may not: whoever writes a setting twice means one of the two.
 */
const isGiven = (frames: ReadonlyArray<Frame>): boolean => {
  const within = frames[0]?.key === "params" && frames[1]?.key === "arguments" ? 2 : 0
  return frames.length > within + 1 && frames[within]?.key === "properties"
}

/** A key as the decoder will see it; an escape that it will refuse stays as it is. */
const unescaped = (key: string): string =>
  key.includes("\\")
    ? key.replace(/\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g, (_, hex: string | undefined, char: string) =>
        hex === undefined ? (escapes.get(char) ?? char) : String.fromCharCode(Number.parseInt(hex, 16))
      )
    : key

const escapes = new Map([
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"]
])

const isKey = (text: string, from: number): boolean => {
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === ":") return true
    if (char !== " " && char !== "\t" && char !== "\n" && char !== "\r") return false
  }
  return false
}

/**
 * Where the string that begins at `start` ends, after its closing quote.
 *
 * A regular expression would do, but the engine keeps a place to return to for
 * each character and gives up, silently, on a text of some megabytes.
 */
const endOfString = (text: string, start: number): number | undefined => {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text[at - 1 - escapes] === "\\") escapes += 1
    if (escapes % 2 === 0) return at + 1
  }
  return undefined
}

const numberTextFault = (match: RegExpExecArray): string | undefined => {
  const [written, fraction, exponent] = match
  const value = Number(written)
  if (!Number.isFinite(value)) return `The number ${shorten(written)} is too large to be kept`
  if (value === 0 && /[1-9]/.test(written.replace(/[eE].*$/, "")))
    return `The number ${shorten(written)} is too small to be kept and would become 0; send 0 or text`
  if (Number.isSafeInteger(value) || Math.abs(value) <= Number.MAX_SAFE_INTEGER) return undefined
  if (fraction === undefined && exponent === undefined)
    return `The integer ${shorten(written)} is beyond ±(2^53−1) and would be rounded; send it as text`
  // Up there every number is an integer: 1e28 says what is kept, 9007199254740993.0 says another one.
  const kept = [String(value), value.toPrecision(17), BigInt(value).toString()]
  return kept.some((text) => digitsOf(text) === digitsOf(written))
    ? undefined
    : `The number ${shorten(written)} would be rounded to ${value}; send it as text`
}

/** The digits that tell two numbers of one size apart. */
const digitsOf = (text: string): string =>
  text
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+|0+$/g, "")

const shorten = (text: string): string => (text.length > 32 ? `${text.slice(0, 32)}…` : text)

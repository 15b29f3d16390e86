/**
 * Finds where a text stops being JSON, which the engine's parser does not report.
 *
 * One pass without recursion, run only after the parser has refused a text. It decodes nothing.
 */
import { beginningOf } from "@tropism/domain/text-beginning"

/** A place in a text, both counted from 1; the column in UTF-16 units. */
export interface TextPlace {
  readonly line: number
  readonly column: number
  /** The text at this place, shortened; empty at the end. */
  readonly excerpt: string
}

/** Returns the first place that violates JSON's grammar; undefined when there is none. */
export const findSyntaxFault = (text: string): TextPlace | undefined => {
  const offset = faultOffset(text)
  return offset === undefined ? undefined : placeOf(text, offset)
}

const excerptMaxChars = 40

const placeOf = (text: string, offset: number): TextPlace => {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < lineStart; at = text.indexOf("\n", at + 1)) line += 1
  const rest = beginningOf(text.slice(offset), excerptMaxChars).split("\n", 1)[0] ?? ""
  return { line, column: offset - lineStart + 1, excerpt: rest.trimEnd() }
}

const space = /[ \t\n\r]*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const plainText = /[ !#-[\]-\uffff]*/y
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** Returns where a sticky pattern that matches at a position ends; undefined when it does not match. */
const matchEnd = (pattern: RegExp, text: string, at: number): number | undefined => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

/** What may follow: a value, a key, or what comes after a value. `first` also allows the container to end. */
type Expectation = "value" | "firstValue" | "key" | "firstKey" | "afterValue"

const faultOffset = (text: string): number | undefined => {
  const open: Array<"{" | "["> = []
  let expected: Expectation = "value"
  let at = 0
  while (true) {
    at = matchEnd(space, text, at) ?? at
    const char = text[at]
    if (expected === "afterValue" && open.length === 0) return char === undefined ? undefined : at
    if (char === undefined) return at
    const isClosing = char === "}" || char === "]"
    if (isClosing && expected !== "value" && expected !== "key") {
      if (open.at(-1) !== (char === "}" ? "{" : "[")) return at
      open.pop()
      expected = "afterValue"
      at += 1
    } else if (expected === "afterValue") {
      if (char !== ",") return at
      expected = open.at(-1) === "{" ? "key" : "value"
      at += 1
    } else if (expected === "key" || expected === "firstKey") {
      const keyEnd = stringEnd(text, at)
      if (!keyEnd.isWhole) return keyEnd.at
      const colon = matchEnd(space, text, keyEnd.at) ?? keyEnd.at
      if (text[colon] !== ":") return colon
      expected = "value"
      at = colon + 1
    } else if (char === "{" || char === "[") {
      open.push(char)
      expected = char === "{" ? "firstKey" : "firstValue"
      at += 1
    } else if (char === '"') {
      const end = stringEnd(text, at)
      if (!end.isWhole) return end.at
      expected = "afterValue"
      at = end.at
    } else {
      const end = matchEnd(scalar, text, at)
      if (end === undefined) return at
      expected = "afterValue"
      at = end
    }
  }
}

/** Returns where a string ends or where it breaks. */
const stringEnd = (text: string, start: number): { readonly at: number; readonly isWhole: boolean } => {
  if (text[start] !== '"') return { at: start, isWhole: false }
  let at = start + 1
  while (true) {
    at = matchEnd(plainText, text, at) ?? at
    if (text[at] === '"') return { at: at + 1, isWhole: true }
    const end = matchEnd(escape, text, at)
    if (end === undefined) return { at, isWhole: false }
    at = end
  }
}

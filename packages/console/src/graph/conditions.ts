/**
 * The language in which the graph is filtered by properties: `license=MIT size>=3 name^"left pad" !author`.
 *
 * Pure. Conditions are parted by spaces and must all hold. What follows the
 * operator is JSON where it reads as JSON, else a text; quotes keep a text with
 * spaces together, and a number a text.
 */
import { PropertyFilters, type PropertyFilter } from "@tropism/domain/property-filter"
import { Result, Schema } from "effect"

export interface Conditions {
  readonly conditions: ReadonlyArray<PropertyFilter>
  /** What could not be understood, as sentences; such words filter nothing. */
  readonly faults: ReadonlyArray<string>
}

/** Each operator with what it means, as the page tells it. */
export const operatorWords = {
  "=": "equals: license=MIT",
  "!=": "does not equal, or is missing: license!=MIT",
  ">": "is greater than: size>10, also >=, < and <=",
  "~": "contains: name~left",
  "^": "starts with: name^@types/",
  "?": "exists: author?; does not exist: !author"
} as const

const operators = {
  "=": "eq",
  "!=": "ne",
  ">": "gt",
  ">=": "gte",
  "<": "lt",
  "<=": "lte",
  "~": "contains",
  "^": "startsWith"
} as const

const word = /"(?:\\.|[^"\\])*"?|\S/y

export const parseConditions = (text: string): Conditions => {
  const read = wordsOf(text).map(parseWord)
  const conditions = read.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const faults = read.flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  const known = Schema.decodeUnknownResult(PropertyFilters)(conditions)
  return Result.isSuccess(known)
    ? { conditions, faults }
    : { conditions: [], faults: [...faults, "Too many conditions, or an invalid one."] }
}

/** The words of a text: spaces part them, but not within quotes. */
const wordsOf = (text: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  let current = ""
  for (let at = 0; at < text.length;) {
    word.lastIndex = at
    const [piece] = word.exec(text) ?? []
    if (piece === undefined) {
      words.push(current)
      current = ""
      at += 1
    } else {
      current += piece
      at += piece.length
    }
  }
  return [...words, current].filter((one) => one !== "")
}

const parseWord = (said: string): Result.Result<PropertyFilter, string> => {
  const [, missing] = /^!([^=<>~^?!"]+)$/.exec(said) ?? []
  if (missing !== undefined) return Result.succeed({ property: missing, op: "exists", value: false })
  const [, there] = /^([^=<>~^?!"]+)\?$/.exec(said) ?? []
  if (there !== undefined) return Result.succeed({ property: there, op: "exists", value: true })
  const [, property, sign, value] = /^([^=<>~^?!"]+)(!=|>=|<=|[=<>~^])([\s\S]+)$/.exec(said) ?? []
  if (property === undefined || value === undefined || !isOperator(sign))
    return Result.fail(`"${said}" is not a valid condition. Examples: license=MIT, size>=3, author?.`)
  return Result.succeed({ property, op: operators[sign], value: valueOf(value) })
}

const isOperator = (sign: string | undefined): sign is keyof typeof operators =>
  sign !== undefined && Object.hasOwn(operators, sign)

const valueOf = (text: string): Schema.Json =>
  Result.getOrElse(
    Result.try(() => JSON.parse(text)),
    () => text.replace(/^"|"$/g, "")
  )

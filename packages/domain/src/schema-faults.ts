/**
 * Says where a value does not fit a schema, and what would.
 *
 * The schemas know what they expect in the words of types; a person is told in
 * plain ones, with a JSON pointer to the place. Nothing is decoded here.
 */
import { SchemaIssue } from "effect"
import { type JsonFault, pointerStep } from "./json.ts"

/** The places that are wrong, each told once. `pointerOf` names a place; without it by JSON pointer. */
export const schemaFaults = (
  issue: SchemaIssue.Issue,
  pointerOf: (path: ReadonlyArray<PropertyKey>) => string = jsonPointer
): ReadonlyArray<JsonFault> => {
  const faults = new Map<string, JsonFault>()
  for (const { path = [], message } of format(issue).issues) {
    const pointer = pointerOf(path.map((step) => (typeof step === "object" ? step.key : step)))
    // A place that is wrong in several ways is told the first: mending it mends the others as often as not.
    if (!faults.has(pointer)) faults.set(pointer, { pointer, message: sentenceOf(message) })
  }
  return [...faults.values()]
}

const jsonPointer = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((key) => pointerStep(String(key))).join("")

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "UnexpectedKey")
      return "There is no field of this name: leave it out or correct its spelling"
    if (issue._tag === "MissingKey") return "This is required"
    return SchemaIssue.defaultLeafHook(issue)
  }
})

const sentenceOf = (message: string): string => {
  const expected = /^Expected (?:(a value (?:with )?)?)([\s\S]+)$/.exec(message)
  if (!expected) return message
  const [, filter, what = ""] = expected
  if (filter === undefined) return `This must be ${alternatives(what)}`
  return filter.endsWith("with ") ? `This must have ${what}` : `This must be ${what}`
}

/** `string | null | null` as "text or null". */
const alternatives = (types: string): string => {
  const words = [...new Set(types.split(" | ").map(wordFor))]
  const last = words.pop() ?? ""
  return words.length === 0 ? last : `${words.join(", ")} or ${last}`
}

const plainWords: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  object: "a JSON object",
  array: "a list"
}

const wordFor = (type: string): string => {
  const tag = /^\{ readonly ("\w+"): ("[^"]*")/.exec(type)
  if (tag) return `a JSON object with ${tag[1]}: ${tag[2]}`
  if (/^(?:\{|[A-Z]\w*$)/.test(type)) return "a JSON object"
  return plainWords[type] ?? (/^(?:readonly \[|ReadonlyArray|Array)/.test(type) ? "a list" : type)
}

/**
 * Says where a value does not fit a schema, and what would.
 *
 * The schemas know what they expect in the words of types; a person is told in
 * plain ones, with a JSON pointer to the place. Nothing is decoded here.
 */
import { SchemaAST, SchemaIssue } from "effect"
import { type JsonFault, pointerStep } from "./json.ts"

/** What is said of a field that nobody has. */
export const noField = "There is no field of this name: leave it out or correct its spelling"

/** What is said where a field has to stand. */
export const missing = "This is required"

/** The places that are wrong, each told once. `pointerOf` names a place; without it by JSON pointer. */
export const schemaFaults = (
  issue: SchemaIssue.Issue,
  pointerOf: (path: ReadonlyArray<PropertyKey>) => string = jsonPointer
): ReadonlyArray<JsonFault> => {
  const faults = new Map<string, JsonFault>()
  const byKind = kindFaults(issue)
  const meant = meantFields(issue)
  for (const { path: steps = [], message } of format(issue).issues) {
    const at = steps.map((step) => (typeof step === "object" ? step.key : step))
    const kind = byKind.get(jsonPointer(at))
    const field = meant.get(jsonPointer(at))
    const pointer = pointerOf(kind ? [...at, kind.field] : at)
    // A place that is wrong in several ways is told the first: mending it mends the others as often as not.
    if (faults.has(pointer)) continue
    faults.set(
      pointer,
      field === undefined
        ? { pointer, message: sentenceOf(kind?.expected ?? message) }
        : { pointer, message: `Fields are named in camelCase: ${field}`, field }
    )
  }
  return [...faults.values()]
}

/** The fields that were written in snake_case, by JSON pointer, each with its name in camelCase. */
const meantFields = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey> = [],
  found: Map<string, string> = new Map()
): ReadonlyMap<string, string> => {
  switch (issue._tag) {
    case "Pointer":
      return meantFields(issue.issue, [...path, ...issue.path], found)
    case "Filter":
    case "Encoding":
      return meantFields(issue.issue, path, found)
    case "Composite":
    case "AnyOf":
      for (const part of issue.issues) meantFields(part, path, found)
      return found
    case "UnexpectedKey": {
      const name = camelCased(String(path.at(-1) ?? ""))
      const isKnown =
        SchemaAST.isObjects(issue.ast) && issue.ast.propertySignatures.some((field) => field.name === name)
      return isKnown ? found.set(jsonPointer(path), name) : found
    }
    default:
      return found
  }
}

const camelCased = (name: string): string =>
  name.replace(/_+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** The field that tells what kind of object a value is, and what it must be. */
interface Kind {
  readonly field: PropertyKey
  readonly expected: string
}

/** The places, by JSON pointer, where a value is of none of the kinds that may stand there. */
const kindFaults = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey> = [],
  found: Map<string, Kind> = new Map()
): ReadonlyMap<string, Kind> => {
  switch (issue._tag) {
    case "Pointer":
      return kindFaults(issue.issue, [...path, ...issue.path], found)
    case "Filter":
    case "Encoding":
      return kindFaults(issue.issue, path, found)
    case "Composite":
      for (const part of issue.issues) kindFaults(part, path, found)
      return found
    case "AnyOf": {
      for (const part of issue.issues) kindFaults(part, path, found)
      const kind = issue.issues.length === 0 ? kindOf(issue.ast) : undefined
      return kind ? found.set(jsonPointer(path), kind) : found
    }
    default:
      return found
  }
}

/** The field by which the objects of a union differ; nothing where there are not several, or none tells them apart. */
const kindOf = ({ types }: SchemaAST.Union): Kind | undefined => {
  const tags = types
    .map(SchemaAST.toEncoded)
    .filter(SchemaAST.isObjects)
    .map(({ propertySignatures }) =>
      propertySignatures.flatMap(({ name, type }) =>
        SchemaAST.isLiteral(type) && !SchemaAST.isOptional(type) ? [{ name, literal: type.literal }] : []
      )
    )
  const [first = [], ...others] = tags
  const shared = first.find(({ name }) => others.every((tag) => tag.some((each) => each.name === name)))
  if (others.length === 0 || shared === undefined) return undefined
  const literals = tags.flat().filter(({ name }) => name === shared.name)
  const expected = `Expected ${literals.map(({ literal }) => JSON.stringify(String(literal))).join(" | ")}`
  return { field: shared.name, expected }
}

const jsonPointer = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((key) => pointerStep(String(key))).join("")

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "UnexpectedKey") return noField
    if (issue._tag === "MissingKey") return missing
    return SchemaIssue.defaultLeafHook(issue)
  }
})

const sentenceOf = (message: string): string => {
  const expected = /^Expected (?:(a value (?:with )?)?)([\s\S]+)$/.exec(message)
  if (!expected) return message
  const [, filter, what = ""] = expected
  if (filter === undefined) return mustBe(what.split(" | "))
  return filter.endsWith("with ") ? `This must have ${what}` : `This must be ${what}`
}

/** That a value must be of one of these types: of `string` and `null`, "This must be text or null". */
export const mustBe = (types: ReadonlyArray<string>): string => {
  const words = [...new Set(types.map(wordFor))]
  const last = words.pop() ?? ""
  return `This must be ${words.length === 0 ? last : `${words.join(", ")} or ${last}`}`
}

const plainWords: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
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

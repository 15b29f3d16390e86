/**
 * What a model reads about a call that could not be made, so that it can mend it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import { isJsonObject, type JsonFault } from "@tropism/domain/json"
import { Predicate, type Schema } from "effect"
import { cutJson } from "@tropism/domain/json-cut"
import { keptChars } from "@tropism/domain/kept-size"
import { toolLimits } from "../limits.ts"

type Named = ReadonlyArray<{ readonly name: string }>

/** It called a tool that it does not have: the nearest one, and all there are. */
export const noTool = (name: string, offered: Named): string =>
  [`There is no tool ${name} for you.`, ...choices(name, offered, "You have")].join(" ")

/** The same, for a person who named a tool that an agent does not have. */
export const noToolOf = (agentName: string, name: string, offered: Named): string =>
  [`The agent ${agentName} has no tool ${name}.`, ...choices(name, offered, "It has")].join(" ")

const choices = (name: string, offered: Named, has: string) => {
  const names = offered.map((tool) => tool.name)
  const nearest = nearestOf(name, names)
  const shown = names.slice(0, toolLimits.listedTools).join(", ")
  const rest =
    names.length > toolLimits.listedTools ? `, and ${names.length - toolLimits.listedTools} more` : ""
  return [
    ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
    names.length === 0 ? `${has} no tools.` : `${has}: ${shown}${rest}.`
  ]
}

/** Its arguments were nothing that a tool can be given. */
export const unreadable = (fault: string): string =>
  `The arguments were not used: ${fault}. Send them again, as one JSON object.`

/** Its arguments do not fit: what is wrong where, and what the tool takes. */
export const unfit = (faults: ReadonlyArray<JsonFault>, schema: unknown): string =>
  `The arguments do not fit the tool's schema. ${faults
    .map(({ message, pointer }) => `${pointer === "" ? "The arguments" : pointer}: ${message}`)
    .join("; ")}. It takes ${shapeOf(schema)}.`

/**
 * An outcome in bounds; one that was cut says so.
 *
 * **Details** An object keeps its members, and only the large ones of them are cut: it is still what its tool promises,
 * and what was done is not told as something else. Anything else becomes the member `result`.
 */
export const bounded = (result: Schema.Json): Schema.Json => {
  const size = keptChars(result)
  if (size <= toolLimits.resultMaxChars) return result
  const { note: said, ...members } = isJsonObject(result) ? result : { result }
  const cut = `The result was ${size} characters long and was cut to fit: ask for less, or for parts of it`
  const head = { isTruncated: true, note: typeof said === "string" ? `${said}. ${cut}` : cut }
  const room = toolLimits.resultMaxChars - keptChars(head)
  return { ...head, ...(cutJson(smallFirst(members), room) as typeof members) }
}

/** The same object, in which a large member leaves the others what they need. */
export const smallFirst = (members: Readonly<Record<string, Schema.Json>>): Record<string, Schema.Json> =>
  Object.fromEntries(Object.entries(members).toSorted(([, a], [, b]) => keptChars(a) - keptChars(b)))

/** The name that is most like another, if one is like it at all. */
export const nearestOf = (name: string, names: ReadonlyArray<string>): string | undefined => {
  const wanted = bare(name)
  const reach = Math.max(2, Math.floor(wanted.length / 4))
  const ranked = names
    .map((each) => ({ each, distance: distanceOf(wanted, bare(each)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const [first] = ranked
  return first !== undefined && first.distance <= reach ? first.each : undefined
}

/** A name without its server, in which `-`, `_` and capitals make no difference. */
const bare = (name: string): string =>
  name
    .replace(/^.*(?:__|\.|:)/, "")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

/** How many characters must be put in, left out or changed to make one text of another. */
const distanceOf = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** A JSON Schema of an object in one line: `{type: string, key?: string, properties: object}`. */
const shapeOf = (schema: unknown): string => {
  const properties = Predicate.hasProperty(schema, "properties") ? schema.properties : {}
  const required =
    Predicate.hasProperty(schema, "required") && Array.isArray(schema.required) ? schema.required : []
  const fields = Object.entries(Predicate.isObject(properties) ? properties : {}).map(
    ([name, field]) => `${name}${required.includes(name) ? "" : "?"}: ${wordOf(field)}`
  )
  return `{${fields.join(", ")}}`
}

const wordOf = (schema: unknown): string => {
  if (Predicate.hasProperty(schema, "enum") && Array.isArray(schema.enum))
    return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (Predicate.hasProperty(schema, "type")) {
    const types = [schema.type].flat().filter((type) => type !== "null")
    if (types.length > 0) return types.join(" | ")
  }
  if (Predicate.hasProperty(schema, "anyOf") && Array.isArray(schema.anyOf)) {
    const words = schema.anyOf.map(wordOf).filter((word) => word !== "null")
    return [...new Set(words)].join(" | ")
  }
  if (Predicate.hasProperty(schema, "$ref")) return "object"
  return Predicate.hasProperty(schema, "type") ? "null" : "any JSON"
}

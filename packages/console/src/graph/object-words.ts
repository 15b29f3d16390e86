/**
 * Objects, their makers and their differences in words.
 *
 * Pure. What agents, people and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import type { GraphObject } from "@tropism/domain/graph"
import {
  canonicalJson,
  findPropertiesFault,
  isJsonObject,
  namelessFault,
  type Properties
} from "@tropism/domain/json"
import { scanJson } from "@tropism/domain/json-text"
import type { PropertyProvenance, Provenance } from "@tropism/domain/provenance"
import { Result, type Schema } from "effect"
import { limits } from "../limits.ts"
import { countText } from "../words/amounts.ts"
import { cutText } from "../words/cut-text.ts"
import { namingProperty, objectName } from "../words/object-name.ts"
import { faultWithin } from "../words/place-name.ts"

interface Maker {
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly agentName?: string | null
  readonly approvedBy?: string | null
}

/** `ada`, `the agent tidy, approved by ada`, `the server`. */
export const makerText = ({ actorType, actorId, agentName, approvedBy }: Maker): string => {
  const maker =
    actorType === "user"
      ? (actorId ?? "someone")
      : actorType === "agent"
        ? agentName === undefined || agentName === null
          ? "an agent"
          : `the agent ${agentName}`
        : "the server"
  return approvedBy === undefined || approvedBy === null ? maker : `${maker}, approved by ${approvedBy}`
}

/** A few of an object's properties, `license MIT, tags 2 entries and 3 more`; not the one that is its name. */
export const propertiesText = (object: Pick<GraphObject, "id" | "key" | "properties">): string => {
  const naming = object.key === null ? namingProperty(object) : undefined
  const properties = Object.entries(object.properties).filter(([name]) => name !== naming)
  if (properties.length === 0) return naming === undefined ? "no properties" : "no other properties"
  const said = properties.slice(0, limits.maxPropertiesSaid).map(([name, value]) => {
    const text = valueWords(value)
    const cut = cutText(text, 1, limits.maxPropertyCharacters)
    return `${cutText(name, 1, limits.maxPropertyCharacters)} ${cut === text ? text : `${cut}…`}`
  })
  const more = properties.length - said.length
  return `${said.join(", ")}${more === 0 ? "" : ` and ${more.toLocaleString("en")} more`}`
}

/** A value in a row: of what has parts, how many. */
const valueWords = (value: Schema.Json): string => {
  if (value === null) return "nothing"
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (Array.isArray(value)) return countText(value.length, "entry", "entries")
  return typeof value === "object"
    ? countText(Object.keys(value).length, "property", "properties")
    : String(value)
}

/** Who gave a property its value, and by what. */
export const whyText = (property: PropertyProvenance): string => {
  const by = `${property.removed ? "Removed" : "Set"} in version ${property.version} by ${makerText(property)}`
  const tool = property.toolCall === null ? "" : `, through ${property.toolCall.tool}`
  return `${by}${tool}.`
}

/** What people call the object. */
export const provenanceName = ({ objectId, key, properties }: Provenance): string =>
  objectName({
    id: objectId,
    key,
    properties: Object.fromEntries(properties.map(({ property, value }) => [property, value]))
  })

const valueIn = ({ properties }: Provenance, name: string): Schema.Json | undefined =>
  properties.find(({ property }) => property === name)?.value

/** Whether an object has a property of this name. */
export const hasProperty = (provenance: Provenance, name: string): boolean =>
  valueIn(provenance, name) !== undefined

/** Whether a property is just what somebody wants it to be: a save whose answer was lost may have made it so. */
export const isNow = (
  provenance: Provenance,
  name: string,
  wanted: Result.Result<Schema.Json, unknown>
): boolean => {
  const now = valueIn(provenance, name)
  return now !== undefined && Result.isSuccess(wanted) && canonicalJson(now) === canonicalJson(wanted.success)
}

/** Whether a property has another value than it had. */
export const hasMoved = (before: Provenance, after: Provenance, name: string): boolean => {
  const [old, young] = [valueIn(before, name), valueIn(after, name)]
  return old === undefined || young === undefined
    ? old !== young
    : canonicalJson(old) !== canonicalJson(young)
}

/** A property's present value as it would be edited; `gone` where there is none. */
export const nowText = (provenance: Provenance, name: string): string => {
  const now = valueIn(provenance, name)
  return now === undefined ? "gone" : `“${editableText(now, kindOf(now))}”`
}

export type ValueKind = "text" | "json"

/** How a value is best written down. */
export const kindOf = (value: Schema.Json | undefined): ValueKind =>
  value === undefined || typeof value === "string" ? "text" : "json"

/** A value as a person edits it. */
export const editableText = (value: Schema.Json | undefined, kind: ValueKind): string => {
  if (value === undefined) return ""
  return kind === "text" && typeof value === "string" ? value : JSON.stringify(value, null, 2)
}

/** What is said of a text that should be JSON. */
export const noJson = "Invalid JSON."

/** What a person wrote, as a value, or why it would not be kept as it was written. */
export const writtenValue = (text: string, kind: ValueKind): Result.Result<Schema.Json, string> => {
  if (kind === "text") return Result.succeed(text)
  return Result.try((): Schema.Json => JSON.parse(text)).pipe(
    Result.mapError(() => noJson),
    Result.filterOrFail(
      () => scanJson(text) === undefined,
      () => faultWithin(scanJson(text) ?? { pointer: "", message: noJson })
    )
  )
}

/** The properties that a person wrote, or why no object can have them. */
export const writtenProperties = (text: string): Result.Result<Properties, string> =>
  Result.flatMap(writtenValue(text, "json"), (value) => {
    if (!isJsonObject(value)) return Result.fail('Expected a JSON object, e.g. {"name": "Ada"}.')
    const fault = namelessFault(value) ?? findPropertiesFault(value)
    return fault === undefined ? Result.succeed(value) : Result.fail(faultWithin(fault, "/properties"))
  })

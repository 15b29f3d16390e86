/**
 * Finds what a person means by `Package/left-pad.license`.
 *
 * A reference is a type and a key, or an object's id, and then a property. Keys
 * have slashes and dots of their own, and so have properties, so every reading
 * is looked up, and what fits twice is said and not guessed. A key may be given by its last part, where only one ends so.
 */
import type { GraphObject } from "@tropism/domain/graph"
import { ObjectId } from "@tropism/domain/ids"
import type { Provenance } from "@tropism/domain/provenance"
import { statusOf } from "@tropism/client/failure-sentence"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Option, Schema } from "effect"
import type { Access } from "./access.ts"
import { failure } from "./failure.ts"
import { limits } from "./limits.ts"
import { printable } from "./terminal/text.ts"

/** One way to read a reference; without a property it means the whole object. */
interface Reading {
  readonly key: string
  readonly property: string | undefined
}

/** An object that is there, or what is left of a deleted one. */
type Known = Pick<GraphObject, "id" | "type" | "key" | "version" | "properties">

/** An object, and why it is what it is: one property of it or all. */
export interface Referred {
  readonly object: Known
  readonly property: string | undefined
  readonly provenance: Provenance
}

export const findReferred = (access: Access, reference: string, named: Option.Option<string>) =>
  Effect.gen(function* () {
    const property = Option.getOrUndefined(named)
    const [, id, ownProperty] =
      /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.([\s\S]+))?$/.exec(reference) ?? []
    const objectId = Schema.decodeUnknownOption(ObjectId)(id)
    if (Option.isSome(objectId)) return yield* ofId(access, objectId.value, property ?? ownProperty)
    const [, type = "", rest = ""] = /^([A-Za-z][A-Za-z0-9_.-]{0,99})\/([\s\S]+)$/.exec(reference) ?? []
    if (rest === "")
      return yield* failure(
        `"${printable(reference)}" is not an object reference. Use its type and key, as in Package/left-pad.license, or its id.`
      )
    const readings = property === undefined ? readingsOf(rest) : [{ key: rest, property }]
    if (readings.length > limits.readings)
      return yield* failure(
        `"${printable(reference)}" has too many dots to separate the key from the property. Set the property with --property.`
      )
    return yield* only(access, type, readings)
  })

/** The whole as a key, and a property after each dot. */
const readingsOf = (rest: string): ReadonlyArray<Reading> => [
  { key: rest, property: undefined },
  ...[...rest.matchAll(/\./g)]
    .map(({ index }) => ({ key: rest.slice(0, index), property: rest.slice(index + 1) }))
    .filter(({ key, property }) => key !== "" && property !== "")
]

const ofId = (access: Access, objectId: ObjectId, property: string | undefined) =>
  Effect.gen(function* () {
    const provenance = yield* access.client.objects.provenance({
      params: { ...access.params, objectId },
      query: {}
    })
    const { type, key, version } = provenance
    const properties = Object.fromEntries(provenance.properties.map((one) => [one.property, one.value]))
    const object: Known = { id: objectId, type, key, version, properties }
    if (property === undefined) return { object, property, provenance }
    return (yield* provenanceOf(access, object, property)) ?? (yield* noProperty([object], property))
  })

/** The one reading that fits. */
const only = (access: Access, type: string, readings: ReadonlyArray<Reading>) =>
  Effect.gen(function* () {
    const exact = yield* objectsOf(access, type, readings, findByKey)
    const found = exact.length > 0 ? exact : yield* objectsOf(access, type, readings, findByEnd)
    const referred = (yield* Effect.forEach(
      found,
      ({ object, property }) => provenanceOf(access, object, property),
      { concurrency: limits.requestsAtOnce }
    )).filter((one) => one !== undefined)
    const [first, second] = referred
    if (first && second)
      return yield* failure(
        `This is ambiguous: ${referred.map(meaning).join(", or ")}. Use the whole key or the id, or set the property with --property.`
      )
    if (first) return first
    if (found.length > 0)
      return yield* noProperty(
        found.map(({ object }) => object),
        found.at(-1)?.property
      )
    const keys = readings.map(({ key }) => `"${printable(key)}"`)
    return yield* failure(
      `Not found: ${type} with the key ${keys.length === 1 ? keys[0] : `${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}`}. Use the id for a deleted object.`
    )
  })

type Find = (access: Access, type: string, key: string) => ReturnType<typeof findByKey>

const objectsOf = (access: Access, type: string, readings: ReadonlyArray<Reading>, find: Find) =>
  Effect.map(
    Effect.forEach(
      readings,
      ({ key, property }) =>
        Effect.map(find(access, type, key), (objects) => objects.map((object) => ({ object, property }))),
      { concurrency: limits.requestsAtOnce }
    ),
    (found) => found.flat()
  )

const findByKey = (access: Access, type: string, key: string) =>
  Effect.map(
    access.client.objects.list({ params: access.params, query: { type, key, limit: 1 } }),
    ({ items }) => items
  )

/** Objects whose key ends so, after a slash. */
const findByEnd = (access: Access, type: string, key: string) =>
  Effect.map(
    access.client.objects.list({
      params: access.params,
      query: { type, query: beginningOf(key, 500), sort: "relevance", limit: 200 }
    }),
    ({ items }) => items.filter((object) => object.key?.endsWith(`/${key}`) === true)
  )

/** The provenance, or nothing where the object never had the property. */
const provenanceOf = (access: Access, object: Known, property: string | undefined) =>
  access.client.objects
    .provenance({
      params: { ...access.params, objectId: object.id },
      query: property === undefined ? {} : { property }
    })
    .pipe(
      Effect.map((provenance): Referred | undefined => ({ object, property, provenance })),
      Effect.catchIf(
        (error) => statusOf(error) === 404,
        () => Effect.succeed(undefined)
      )
    )

const nameOf = ({ type, key, id }: Known): string => `${type} ${printable(key ?? id)}`

const meaning = ({ object, property }: Referred): string =>
  property === undefined
    ? `the whole of ${nameOf(object)} (${object.id})`
    : `"${printable(property)}" of ${nameOf(object)} (${object.id})`

const noProperty = (objects: ReadonlyArray<Known>, property: string | undefined) =>
  failure(
    objects
      .map((object) => {
        const names = Object.keys(object.properties).toSorted().map(printable)
        const has = names.length === 0 ? "it has no properties" : `it has ${names.join(", ")}`
        return `${nameOf(object)} never had a property "${printable(property ?? "")}": ${has}.`
      })
      .join(" ")
  )

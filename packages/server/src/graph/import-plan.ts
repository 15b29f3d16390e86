/**
 * What an import must change so that the graph says what a lockfile says.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Pure, and in an order that never leaves a relationship without its ends: the
 * same file imported twice plans nothing. Only the properties that a lockfile
 * speaks of are the import's own; what people and agents have noted on a
 * package or a dependency beside them stays, and so does a dependency without
 * them, which no lockfile has made. Nothing is written here.
 */
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { canonicalJson, isJsonObject, type Properties } from "@tropism/domain/json"
import type { Untrusted } from "@tropism/domain/untrusted"
import type { Schema } from "effect"
import type { LockDependency } from "./package-lock-dependencies.ts"
import { order } from "./package-lock-entries.ts"
import type { LockGraph, LockPackage } from "./package-lock.ts"

/** A package of the lockfile as it stands in the graph. */
export interface CurrentPackage {
  readonly id: ObjectId
  readonly key: string
  readonly properties: Properties
  readonly untrusted: Untrusted
  readonly version: number
}

/** A dependency as it stands in the graph, its ends by key. */
export interface CurrentDependency {
  readonly id: RelationshipId
  readonly fromKey: string
  readonly toKey: string
  readonly properties: Properties
  readonly untrusted: Untrusted
  readonly version: number
}

/** What there is of a lockfile: its packages, and the dependencies between two of them. */
export interface CurrentGraph {
  readonly packages: ReadonlyArray<CurrentPackage>
  readonly dependencies: ReadonlyArray<CurrentDependency>
}

/** `patch` is a JSON merge patch; `expectedVersion` is the version that was read. */
export type ImportStep =
  | { readonly type: "createPackage"; readonly key: string; readonly properties: Properties }
  | {
      readonly type: "updatePackage"
      readonly id: ObjectId
      readonly key: string
      readonly patch: Properties
      readonly expectedVersion: number
    }
  | {
      readonly type: "createDependency"
      readonly fromKey: string
      readonly toKey: string
      readonly properties: Properties
    }
  | {
      readonly type: "updateDependency"
      readonly id: RelationshipId
      readonly fromKey: string
      readonly toKey: string
      readonly patch: Properties
      readonly expectedVersion: number
    }
  | {
      readonly type: "deleteDependency"
      readonly id: RelationshipId
      readonly fromKey: string
      readonly toKey: string
      readonly expectedVersion: number
    }
  | {
      readonly type: "deletePackage"
      readonly id: ObjectId
      readonly key: string
      readonly expectedVersion: number
    }

export interface ImportPlan {
  /** To be done in this order: packages come, dependencies come and change, dependencies go, packages go. */
  readonly steps: ReadonlyArray<ImportStep>
  readonly unchangedPackages: number
  readonly unchangedDependencies: number
}

/** The properties of a package that an import sets and removes. */
export const importedProperties: ReadonlySet<string> = new Set([
  "name",
  "path",
  "lockfile",
  "source",
  "version",
  "resolved",
  "license",
  "deprecated",
  "engines",
  "hasInstallScript",
  "dev",
  "optional",
  "devOptional",
  "peer"
])

/** The properties of a dependency that an import sets and removes; each that comes of a lockfile has all of them. */
export const importedDependencyProperties: ReadonlySet<string> = new Set(["kind", "range"])

/** Compares the graph with a lockfile of the same name; what an untrusted one says is marked so. */
export const planImport = (current: CurrentGraph, lock: LockGraph, isUntrusted = false): ImportPlan => {
  const remarked = remarking(isUntrusted)
  const packages = pair(current.packages, lock.packages, (each) => each.key)
  const dependencies = pair(current.dependencies, lock.dependencies, endsOf)
  const updates = packages.both.flatMap(([before, after]): ReadonlyArray<ImportStep> => {
    const patch = {
      ...patchBetween(before.properties, after.properties, (name) => importedProperties.has(name)),
      ...remarked(before, after.properties)
    }
    return isEmpty(patch)
      ? []
      : [{ type: "updatePackage", id: before.id, key: before.key, patch, expectedVersion: before.version }]
  })
  const relationshipUpdates = dependencies.both.flatMap(
    ([{ id, fromKey, toKey, ...before }, { properties }]): ReadonlyArray<ImportStep> => {
      const patch = {
        ...patchBetween(before.properties, properties, (name) => importedDependencyProperties.has(name)),
        ...remarked(before, properties)
      }
      return isEmpty(patch)
        ? []
        : [{ type: "updateDependency", id, fromKey, toKey, patch, expectedVersion: before.version }]
    }
  )
  return {
    steps: [
      ...packages.created.map(({ key, properties }: LockPackage): ImportStep => ({
        type: "createPackage",
        key,
        properties
      })),
      ...updates,
      ...dependencies.created.map(({ fromKey, toKey, properties }: LockDependency): ImportStep => ({
        type: "createDependency",
        fromKey,
        toKey,
        properties
      })),
      ...relationshipUpdates,
      ...dependencies.deleted.filter(isImported).map(({ id, fromKey, toKey, version }): ImportStep => ({
        type: "deleteDependency",
        id,
        fromKey,
        toKey,
        expectedVersion: version
      })),
      ...packages.deleted.map(({ id, key, version }): ImportStep => ({
        type: "deletePackage",
        id,
        key,
        expectedVersion: version
      }))
    ],
    unchangedPackages: packages.both.length - updates.length,
    unchangedDependencies: dependencies.both.length - relationshipUpdates.length
  }
}

/** Whether a dependency comes of a lockfile. */
const isImported = ({ properties }: CurrentDependency): boolean =>
  [...importedDependencyProperties].every((name) => Object.hasOwn(properties, name))

/** Both ends as one text; the length of the first says where the second begins. */
const endsOf = (each: { readonly fromKey: string; readonly toKey: string }): string =>
  `${each.fromKey.length}:${each.fromKey}${each.toKey}`

interface Paired<Before, After> {
  readonly created: ReadonlyArray<After>
  readonly both: ReadonlyArray<readonly [Before, After]>
  readonly deleted: ReadonlyArray<Before>
}

/** Pairs what is there with what should be; of two that are the same thing the one with the smaller id stays. */
const pair = <Before extends { readonly id: string }, After>(
  before: ReadonlyArray<Before>,
  after: ReadonlyArray<After>,
  keyOf: (each: Before | After) => string
): Paired<Before, After> => {
  const wanted = new Map(after.map((each) => [keyOf(each), each]))
  const kept = new Map<string, Before>()
  const deleted: Array<Before> = []
  for (const each of before.toSorted((a, b) => order(a.id, b.id))) {
    const key = keyOf(each)
    if (wanted.has(key) && !kept.has(key)) kept.set(key, each)
    else deleted.push(each)
  }
  const both: Array<readonly [Before, After]> = []
  const created: Array<After> = []
  for (const [key, each] of wanted) {
    const match = kept.get(key)
    if (match) both.push([match, each])
    else created.push(each)
  }
  return { created, both, deleted: deleted.sort((a, b) => order(keyOf(a), keyOf(b)) || order(a.id, b.id)) }
}

const isEmpty = (patch: Properties): boolean => Object.keys(patch).length === 0

/** The properties that have another mark than they should, each with a patch of which nothing of the old value is left. */
const remarking =
  (isUntrusted: boolean) =>
  (
    { properties, untrusted }: Pick<CurrentPackage, "properties" | "untrusted">,
    after: Properties
  ): Properties =>
    Object.fromEntries(
      Object.entries(after)
        .filter(([name]) => Object.hasOwn(properties, name) && untrusted.includes(name) !== isUntrusted)
        .map(([name, value]) => [name, replacing(properties[name] ?? null, value)])
    )

/** The merge patch that puts one value in the place of another. */
const replacing = (before: Schema.Json, after: Schema.Json): Schema.Json =>
  isJsonObject(before) && isJsonObject(after)
    ? {
        ...Object.fromEntries(Object.keys(before).map((name) => [name, null])),
        ...Object.fromEntries(
          Object.entries(after).map(([name, value]) => [name, replacing(before[name] ?? null, value)])
        )
      }
    : after

/** The merge patch that makes one state of properties the other, in the names that are judged. `after` holds no null. */
const patchBetween = (
  before: Properties,
  after: Properties,
  isJudged: (name: string) => boolean = () => true
): Properties => {
  const patch: Record<string, Schema.Json> = {}
  for (const name of Object.keys(before))
    if (isJudged(name) && !Object.hasOwn(after, name)) patch[name] = null
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (old === undefined) patch[name] = value
    else if (isJsonObject(old) && isJsonObject(value)) {
      const inner = patchBetween(old, value)
      if (!isEmpty(inner)) patch[name] = inner
    } else if (canonicalJson(old) !== canonicalJson(value)) patch[name] = value
  }
  return patch
}

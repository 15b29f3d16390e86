/**
 * Imports a lockfile into the graph and reports progress.
 *
 * The plan is pure; this file runs it through the gateway, one transaction per batch. A crash leaves whole batches, and
 * importing the file again plans only what is missing. Each change is its own root event. A package without a lockfile
 * joins this one; when another lockfile owns a package, nothing is written.
 */
import type { ImportLine } from "@tropism/api/transfer-api"
import { type Actor, direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { ObjectId, ProjectId, RelationshipId } from "@tropism/domain/ids"
import { canonicalJson, isJsonObject, type Properties } from "@tropism/domain/json"
import type { Untrusted } from "@tropism/domain/untrusted"
import { Cause, Context, Deferred, Effect, Layer, Schema, type Scope, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../../database/database.ts"
import { graphLimits } from "../../limits.ts"
import { type ChangeRefused, refused } from "../change-refused.ts"
import { Gateway } from "../gateway.ts"
import { keepableText } from "./import-records.ts"
import { countAsGrown, type ImportAnswer, makeImportAnswer, ImportTurns, senderLost } from "./imports.ts"
import { order, type LockGraph, type LockDependency, type LockPackage } from "./package-lock.ts"

export const packageType = "Package"
export const dependencyType = "DEPENDS_ON"

/** A package of the graph with its lockfile; null when it has none. */
interface FoundPackage extends CurrentPackage {
  readonly lockfile: string | null
}

interface FoundDependency extends Omit<CurrentDependency, "fromKey" | "toKey"> {
  readonly fromId: ObjectId
  readonly toId: ObjectId
}

/** Counts of an import so far. */
type Counts = Pick<
  Extract<ImportLine, { readonly type: "finished" }>,
  | "created"
  | "updated"
  | "deleted"
  | "unchanged"
  | "relationshipsCreated"
  | "relationshipsUpdated"
  | "relationshipsDeleted"
>

/** A step failed; the batches before it are committed. */
class ImportStopped extends Schema.TaggedError<ImportStopped>()("ImportStopped", { detail: Schema.String }) {}

/** A request to import a lockfile. */
export interface LockImport<E, R> {
  readonly projectId: ProjectId
  readonly actor: Actor
  readonly isUntrusted: boolean
  /** Completes when the sender's authority is gone. */
  readonly lost: Effect.Effect<void>
  /** Reads or refuses the file. */
  readonly read: Effect.Effect<LockGraph, E, R>
}

export class Importer extends Context.Service<
  Importer,
  {
    /**
     * Reads the file once it has its slot, and imports it while the scope is open.
     *
     * **Details** Returns after the file was read; the lines end with `finished`, or with `failed` and the reason.
     */
    readonly open: <E, R>(
      request: LockImport<E, R>
    ) => Effect.Effect<Stream.Stream<ImportLine>, E, R | Scope.Scope>
  }
>()("@tropism/server/graph/Importer") {
  static readonly layer = Layer.effect(
    Importer,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const gateway = yield* Gateway
      const turns = yield* ImportTurns

      /** Returns this lockfile's part of the graph, and other owners of its packages' keys. */
      const current = Effect.fn("Importer.current")(function* (lock: LockGraph) {
        const { projectId } = yield* ProjectTransaction
        const found = yield* sql<FoundPackage>`
          select id, key, properties, untrusted, version, properties->>'lockfile' as lockfile from kb.graph_objects
          where project_id = ${projectId} and type = ${packageType} and deleted_at is null and key is not null
            and (properties->>'lockfile' = ${lock.name} or key in (select unnest(${lock.packages.map(({ key }) => key)}::text[])))`
        const packages = found.filter(({ lockfile }) => lockfile === null || lockfile === lock.name)
        const keys = new Map(packages.map(({ id, key }) => [id, key]))
        const edges = yield* sql<FoundDependency>`
          with package as materialized (select unnest(${[...keys.keys()]}::uuid[]) as id)
          select id, from_id, to_id, properties, untrusted, version from kb.graph_relationships
          where project_id = ${projectId} and type = ${dependencyType} and deleted_at is null
            and from_id in (select id from package) and to_id in (select id from package)`
        const dependencies = edges.map(({ fromId, toId, ...edge }): CurrentDependency => ({
          ...edge,
          fromKey: keys.get(fromId) ?? "",
          toKey: keys.get(toId) ?? ""
        }))
        return { packages, dependencies, others: found.filter((one) => !keys.has(one.id)) }
      }, orDie)

      /** Applies steps one by one and collects the ids of created objects. */
      const applying = (ids: Map<string, ObjectId>, actor: Actor, isUntrusted: boolean) =>
        Effect.fnUntraced(
          function* (step: ImportStep) {
            for (const change of yield* changesOf(step, ids)) {
              const { entity } = yield* gateway.apply(isUntrusted ? marked(change) : change, {
                actor,
                cause: direct
              })
              if (change.type === "create" && change.key !== null && entity.kind === "object")
                ids.set(change.key, entity.object.id)
            }
          },
          (applied, step) => Effect.mapError(applied, (error) => stoppedBy(error, step))
        )

      /** Commits the batches and reports each. */
      const carryOut = Effect.fn("Importer.carryOut")(function* (
        { actor, isUntrusted, projectId }: LockImport<unknown, unknown>,
        lock: LockGraph,
        tell: ImportAnswer["tell"]
      ) {
        const now = yield* database.inProject(projectId, current(lock))
        if (now.others.length > 0)
          return yield* new ImportStopped({ detail: whoseTheyAre(now.others, lock.name) })
        const plan = planImport(now, lock, isUntrusted)
        const ids = new Map(now.packages.map((one) => [one.key, one.id]))
        const apply = applying(ids, actor, isUntrusted)
        const counts = { ...noCounts, unchanged: plan.unchangedPackages }
        const countRows = countAsGrown(sql, 0)
        let done = 0
        for (const steps of batches(plan.steps)) {
          yield* turns.batch(database.inProject(projectId, Effect.forEach(steps, apply, { discard: true })))
          for (const step of steps) count(counts, step)
          done += steps.length
          yield* countRows(done)
          yield* tell({ type: "progress", done, total: plan.steps.length })
        }
        yield* tell({ type: "finished", ...counts })
      })

      const open = Effect.fn("Importer.open")(function* <E, R>(request: LockImport<E, R>) {
        const answer = yield* makeImportAnswer
        const isRead = yield* Deferred.make<void, E>()
        const work = Effect.gen(function* () {
          const lock = yield* request.read
          yield* Deferred.succeed(isRead, undefined)
          yield* carryOut(request, lock, answer.tell).pipe(
            Effect.raceFirst(Effect.andThen(request.lost, Effect.fail(senderLost))),
            Effect.catchTags({
              ImportStopped: ({ detail }) => answer.tell(failed(detail)),
              FileBrokeOff: ({ detail }) => answer.tell(failed(detail))
            }),
            Effect.catchCauseIf(
              (cause) => !Cause.hasInterrupts(cause),
              (cause) =>
                Effect.andThen(
                  Effect.logError("An import of a lockfile failed", cause),
                  answer.tell(failed("The server failed; its log says why"))
                )
            )
          )
        })
        yield* turns.lockfile(request.projectId, work).pipe(
          Effect.onError((cause) => Deferred.failCause(isRead, cause)),
          Effect.ignoreCause,
          Effect.ensuring(answer.end),
          Effect.forkScoped
        )
        yield* Deferred.await(isRead)
        return answer.lines
      })

      return Importer.of({ open })
    })
  )
}

const noCounts: Counts = {
  created: 0,
  updated: 0,
  deleted: 0,
  unchanged: 0,
  relationshipsCreated: 0,
  relationshipsUpdated: 0,
  relationshipsDeleted: 0
}

const failed = (reason: string): ImportLine => ({
  type: "failed",
  message: `${reason}. Import the file again.`
})

const stoppedBy = ({ detail, reason }: ChangeRefused, step: ImportStep): ImportStopped => {
  const what = "key" in step ? step.key : `The dependency of ${step.fromKey} on ${step.toKey}`
  return new ImportStopped({
    detail:
      reason === "invalid"
        ? `${what} has no room for what the file says: ${detail}. Remove some of what was noted there`
        : `The graph changed while the file was imported: ${detail}`
  })
}

/** Names the owners of the file's packages and the remedy. */
const whoseTheyAre = (others: ReadonlyArray<FoundPackage>, name: string): string => {
  const [{ key, lockfile }] = others.toSorted((a, b) => order(a.key, b.key)) as [FoundPackage]
  const more = others.length === 1 ? "" : `; so with ${others.length - 1} more`
  const shown = keepableText(lockfile ?? "", graphLimits.lockfileNameShownMaxChars)
  return `${key} is a package of the lockfile ${shown}, so nothing was written: set its property lockfile to ${name}, or delete it${more}`
}

/** Marks all properties of a change as untrusted. */
const marked = (change: Change): Change =>
  "data" in change ? { ...change, untrusted: Object.keys(change.data) } : change

/** Returns the changes of a step. */
const changesOf = (
  step: ImportStep,
  ids: ReadonlyMap<string, ObjectId>
): Effect.Effect<ReadonlyArray<Change>, ChangeRefused> => {
  switch (step.type) {
    case "createPackage":
      return Effect.succeed([
        { type: "create", objectType: packageType, key: step.key, data: step.properties }
      ])
    case "updatePackage":
      return Effect.succeed([
        { type: "update", objectId: step.id, data: step.patch, expectedVersion: step.expectedVersion }
      ])
    case "deletePackage":
      return Effect.succeed([{ type: "delete", objectId: step.id, expectedVersion: step.expectedVersion }])
    case "createDependency":
      return Effect.map(related(step, ids), (change) => [change])
    case "updateDependency":
      return Effect.succeed([
        {
          type: "updateRelationship",
          relationshipId: step.id,
          data: step.patch,
          expectedVersion: step.expectedVersion
        }
      ])
    case "deleteDependency":
      return Effect.succeed([
        { type: "deleteRelationship", relationshipId: step.id, expectedVersion: step.expectedVersion }
      ])
  }
}

const related = (
  step: Extract<ImportStep, { readonly type: "createDependency" }>,
  ids: ReadonlyMap<string, ObjectId>
): Effect.Effect<Change, ChangeRefused> => {
  const fromId = ids.get(step.fromKey)
  const toId = ids.get(step.toKey)
  return fromId === undefined || toId === undefined
    ? Effect.fail(
        refused("notFound", `There is no package ${fromId === undefined ? step.fromKey : step.toKey}`)
      )
    : Effect.succeed({
        type: "createRelationship",
        relationship: { fromId, toId, type: dependencyType },
        data: step.properties
      })
}

const count = (counts: { -readonly [K in keyof Counts]: Counts[K] }, step: ImportStep): void => {
  if (step.type === "createPackage") counts.created += 1
  else if (step.type === "updatePackage") counts.updated += 1
  else if (step.type === "deletePackage") counts.deleted += 1
  else if (step.type === "deleteDependency") counts.relationshipsDeleted += 1
  else if (step.type === "createDependency") counts.relationshipsCreated += 1
  else if (step.type === "updateDependency") counts.relationshipsUpdated += 1
}

const batches = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / graphLimits.importBatchChanges) }, (_, index) =>
    items.slice(index * graphLimits.importBatchChanges, (index + 1) * graphLimits.importBatchChanges)
  )

// Plans the changes that make the graph match a lockfile.
//
// Pure, in an order in which no relationship is ever without its ends; importing the same file twice plans nothing. The import
// owns only the properties that come from a lockfile. Other properties of people and agents stay, and so does a dependency
// without lockfile properties.

/** A package of the lockfile as it is in the graph. */
interface CurrentPackage {
  readonly id: ObjectId
  readonly key: string
  readonly properties: Properties
  readonly untrusted: Untrusted
  readonly version: number
}

/** A dependency as it is in the graph, with the keys of its ends. */
interface CurrentDependency {
  readonly id: RelationshipId
  readonly fromKey: string
  readonly toKey: string
  readonly properties: Properties
  readonly untrusted: Untrusted
  readonly version: number
}

/** A lockfile's part of the graph: its packages and the dependencies between two of them. */
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
  /** Steps in order: packages are created, dependencies created and updated, dependencies deleted, packages deleted. */
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

/** The properties of a dependency that an import sets and removes; every imported dependency has all of them. */
export const importedDependencyProperties: ReadonlySet<string> = new Set(["kind", "range"])

/** Compares the graph with a lockfile of the same name; marks the content of an untrusted one. */
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

/** Whether a dependency comes from a lockfile. */
const isImported = ({ properties }: CurrentDependency): boolean =>
  [...importedDependencyProperties].every((name) => Object.hasOwn(properties, name))

/** Both ends as one text; the length prefix keeps different pairs distinct. */
const endsOf = (each: { readonly fromKey: string; readonly toKey: string }): string =>
  `${each.fromKey.length}:${each.fromKey}${each.toKey}`

interface Paired<Before, After> {
  readonly created: ReadonlyArray<After>
  readonly both: ReadonlyArray<readonly [Before, After]>
  readonly deleted: ReadonlyArray<Before>
}

/** Pairs existing entities with wanted ones; of two duplicates the one with the smaller id stays. */
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

/** Returns the properties whose mark must change, each with a patch that leaves nothing of the old value. */
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

/** Returns the merge patch that replaces one value by another. */
const replacing = (before: Schema.Json, after: Schema.Json): Schema.Json =>
  isJsonObject(before) && isJsonObject(after)
    ? {
        ...Object.fromEntries(Object.keys(before).map((name) => [name, null])),
        ...Object.fromEntries(
          Object.entries(after).map(([name, value]) => [name, replacing(before[name] ?? null, value)])
        )
      }
    : after

/** Returns the merge patch from one state of properties to another, for the given names. `after` contains no null. */
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

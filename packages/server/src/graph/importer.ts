/**
 * Makes the graph say what a lockfile says, and tells its progress.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The plan is pure; this file carries it out through the gateway, in batches of
 * one transaction each. Dying in between leaves whole batches, and importing the
 * same file again plans only what is missing. Each change is its own root event.
 * A package that nobody has from a lockfile becomes the file's, with what stands in
 * it; where one is another lockfile's, nothing is written.
 */
import type { ImportLine } from "@tropism/api/transfer-api"
import { type Actor, direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { ObjectId, ProjectId } from "@tropism/domain/ids"
import { Cause, Context, Deferred, Effect, Layer, Schema, type Scope, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { Gateway } from "./gateway.ts"
import { countAsGrown } from "./grown-tables.ts"
import { type ImportAnswer, makeImportAnswer } from "./import-answer.ts"
import { type CurrentDependency, type CurrentPackage, type ImportStep, planImport } from "./import-plan.ts"
import { ImportTurns } from "./import-turns.ts"
import { keepableText } from "./keepable-text.ts"
import { senderLost } from "./import-source.ts"
import { order } from "./package-lock-entries.ts"
import type { LockGraph } from "./package-lock.ts"
import { type ChangeRefused, refused } from "./refused.ts"

export const packageType = "Package"
export const dependencyType = "DEPENDS_ON"

/** A package as it was found, and whose it is: null where no lockfile has it. */
interface FoundPackage extends CurrentPackage {
  readonly lockfile: string | null
}

interface FoundDependency extends Omit<CurrentDependency, "fromKey" | "toKey"> {
  readonly fromId: ObjectId
  readonly toId: ObjectId
}

/** What an import of a lockfile has done so far. */
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

/** A step could not be done; those of the batches before it are. */
class ImportStopped extends Schema.TaggedError<ImportStopped>()("ImportStopped", { detail: Schema.String }) {}

/** A lockfile that somebody sends. */
export interface LockImport<E, R> {
  readonly projectId: ProjectId
  readonly actor: Actor
  readonly isUntrusted: boolean
  /** Done once the sender may import no more. */
  readonly lost: Effect.Effect<void>
  /** Reads the file, or refuses it. */
  readonly read: Effect.Effect<LockGraph, E, R>
}

export class Importer extends Context.Service<
  Importer,
  {
    /**
     * Reads the file when its turn has come, and imports it while the scope is open.
     *
     * **Details** It answers when the file was read; the lines end with `finished`, or with `failed` and the reason.
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

      /** What the graph says of this lockfile now, and who else has a key of its packages. */
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

      /** Applies steps one by one, and remembers the ids of what they make. */
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

      /** Commits batch after batch, and tells of each. */
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

/** Who has keys of the file's packages, and what to do about it. */
const whoseTheyAre = (others: ReadonlyArray<FoundPackage>, name: string): string => {
  const [{ key, lockfile }] = others.toSorted((a, b) => order(a.key, b.key)) as [FoundPackage]
  const more = others.length === 1 ? "" : `; so with ${others.length - 1} more`
  const shown = keepableText(lockfile ?? "", graphLimits.lockfileNameShownMaxChars)
  return `${key} is a package of the lockfile ${shown}, so nothing was written: set its property lockfile to ${name}, or delete it${more}`
}

/** A change all of whose properties are untrusted. */
const marked = (change: Change): Change =>
  "data" in change ? { ...change, untrusted: Object.keys(change.data) } : change

/** The changes that carry out a step. */
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

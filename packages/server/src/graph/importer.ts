/**
 * Makes the graph say what a lockfile says, and tells its progress.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The plan is pure; this file carries it out through the gateway, in batches of
 * one transaction each. Dying in between leaves whole batches, and importing the
 * same file again plans only what is missing. Each change is its own root event.
 */
import type { ImportLine } from "@tropism/api/transfer-api"
import { type Actor, direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { ObjectId, ProjectId } from "@tropism/domain/ids"
import { Cause, Context, Effect, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { Gateway } from "./gateway.ts"
import { countAsGrown } from "./grown-tables.ts"
import { type CurrentDependency, type CurrentPackage, type ImportStep, planImport } from "./import-plan.ts"
import type { LockGraph } from "./package-lock.ts"
import { type ChangeRefused, refused } from "./refused.ts"

export const packageType = "Package"
export const dependencyType = "DEPENDS_ON"

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

export class Importer extends Context.Service<
  Importer,
  {
    /** Carries out the import; the stream ends with `finished`, or with `failed` and the reason. */
    readonly importLock: (
      projectId: ProjectId,
      lock: LockGraph,
      actor: Actor,
      isUntrusted?: boolean
    ) => Stream.Stream<ImportLine>
  }
>()("@tropism/server/graph/Importer") {
  static readonly layer = Layer.effect(
    Importer,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const gateway = yield* Gateway

      /** What the graph says of this lockfile now. */
      const current = Effect.fn("Importer.current")(function* (lockfile: string) {
        const { projectId } = yield* ProjectTransaction
        const packages = yield* sql<CurrentPackage>`
          select id, key, properties, untrusted, version from kb.graph_objects
          where project_id = ${projectId} and type = ${packageType} and deleted_at is null and properties->>'lockfile' = ${lockfile} and key is not null`
        const dependencies = yield* sql<CurrentDependency>`
          select one.id, start.key as from_key, finish.key as to_key, one.properties, one.untrusted, one.version from kb.graph_relationships one
          join kb.graph_objects start on start.id = one.from_id join kb.graph_objects finish on finish.id = one.to_id
          where one.project_id = ${projectId} and one.type = ${dependencyType} and one.deleted_at is null
            and start.type = ${packageType} and start.properties->>'lockfile' = ${lockfile} and start.key is not null
            and finish.type = ${packageType} and finish.properties->>'lockfile' = ${lockfile} and finish.key is not null`
        return { packages, dependencies }
      }, orDie)

      const importLock = (
        projectId: ProjectId,
        lock: LockGraph,
        actor: Actor,
        isUntrusted = false
      ): Stream.Stream<ImportLine> =>
        Stream.unwrap(
          Effect.gen(function* () {
            const now = yield* database.inProject(projectId, current(lock.name))
            const plan = planImport(now, lock, isUntrusted)
            const ids = new Map(now.packages.map((one) => [one.key, one.id]))
            const counts: Counts = {
              created: 0,
              updated: 0,
              deleted: 0,
              unchanged: plan.unchangedPackages,
              relationshipsCreated: 0,
              relationshipsUpdated: 0,
              relationshipsDeleted: 0
            }

            /** Applies one step, and remembers the id of what it made. */
            const apply = Effect.fnUntraced(function* (step: ImportStep) {
              for (const change of yield* changesOf(step, ids)) {
                const { entity } = yield* gateway.apply(isUntrusted ? marked(change) : change, {
                  actor,
                  cause: direct
                })
                if (change.type === "create" && change.key !== null && entity.kind === "object")
                  ids.set(change.key, entity.object.id)
              }
            })

            const commit = (steps: ReadonlyArray<ImportStep>) =>
              database.inProject(projectId, Effect.forEach(steps, apply, { discard: true }))

            const done = { steps: 0 }
            const countRows = countAsGrown(sql, 0)
            const progress = Stream.fromIterable(batches(plan.steps)).pipe(
              Stream.mapEffect((steps) =>
                Effect.gen(function* () {
                  yield* commit(steps)
                  for (const step of steps) count(counts, step)
                  done.steps += steps.length
                  yield* countRows(done.steps)
                  return { type: "progress", done: done.steps, total: plan.steps.length } satisfies ImportLine
                })
              ),
              Stream.concat(Stream.sync((): ImportLine => ({ type: "finished", ...counts })))
            )
            return progress
          })
        ).pipe(
          Stream.catchTag("ChangeRefused", ({ detail }: ChangeRefused) =>
            Stream.succeed(failed(`The graph changed while the file was imported: ${detail}`))
          ),
          Stream.catchCauseIf(
            (cause) => !Cause.hasInterrupts(cause),
            (cause) =>
              Stream.fromEffect(
                Effect.as(
                  Effect.logError("An import of a lockfile failed", cause),
                  failed("The server failed; its log says why")
                )
              )
          )
        )

      return Importer.of({ importLock })
    })
  )
}

const failed = (reason: string): ImportLine => ({
  type: "failed",
  message: `${reason}. Import the file again.`
})

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

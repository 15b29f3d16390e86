/**
 * The tenants: every row of every other table belongs to one.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * A project is made together with the rows that count for it. Listing goes
 * through a function that crosses projects and answers names only.
 */
import type { ProjectId, UserId } from "@tropism/domain/ids"
import {
  defineSettings,
  patchSettings,
  type ProjectSettings,
  type ProjectSettingsPatch
} from "@tropism/domain/project-settings"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Ids } from "../ids.ts"
import { Database, onlyRow, orDie, ProjectTransaction } from "./database.ts"

export interface ProjectRow {
  readonly id: ProjectId
  readonly name: string
  readonly createdAt: string
}

export class Projects extends Context.Service<
  Projects,
  {
    /** Makes a project, in one transaction with what belongs to each new one. */
    readonly create: (
      name: string,
      by: UserId,
      beginnings: Effect.Effect<unknown, never, ProjectTransaction>
    ) => Effect.Effect<ProjectRow>
    /** The project of this transaction; undefined when there is none of that id. */
    readonly find: Effect.Effect<ProjectRow | undefined, never, ProjectTransaction>
    /** What the project of this transaction has decided, every default said. */
    readonly settings: Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** What `settings` tells, which nobody else changes for the rest of the transaction. */
    readonly holdSettings: Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** Changes the settings of the project of this transaction, and answers them. */
    readonly changeSettings: (
      patch: ProjectSettingsPatch
    ) => Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** Gives the project of this transaction another name; undefined when there is none. */
    readonly rename: (name: string) => Effect.Effect<ProjectRow | undefined, never, ProjectTransaction>
    /** Projects newest first; null ids are all of them. */
    readonly list: (
      ids: ReadonlyArray<ProjectId> | null,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ProjectRow>>
  }
>()("@tropism/server/database/Projects") {
  static readonly layer = Layer.effect(
    Projects,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const ids = yield* Ids

      const find = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const [row] =
          yield* sql<StoredRow>`select id, name, created_at from kb.projects where id = ${projectId}`
        return row && toProject(row)
      }).pipe(orDie)

      const settings = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<KeptSettings>`select settings from kb.projects where id = ${projectId}`,
          onlyRow
        )
        return defineSettings(row.settings)
      }).pipe(orDie)

      const held = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<KeptSettings>`select settings from kb.projects where id = ${projectId} for no key update`,
          onlyRow
        )
        return row.settings
      }).pipe(orDie)

      const changeSettings = Effect.fn("Projects.changeSettings")(function* (patch: ProjectSettingsPatch) {
        const { projectId } = yield* ProjectTransaction
        const kept = patchSettings(yield* held, patch)
        yield* sql`update kb.projects set settings = ${JSON.stringify(kept)}::text::jsonb where id = ${projectId}`
        return defineSettings(kept)
      }, orDie)

      const create = Effect.fn("Projects.create")(function* (
        name: string,
        by: UserId,
        beginnings: Effect.Effect<unknown, never, ProjectTransaction>
      ) {
        const id = (yield* ids.next) as ProjectId
        return yield* database
          .inProject(
            id,
            Effect.gen(function* () {
              const rows = yield* sql<StoredRow>`
              insert into kb.projects (id, name, created_by) values (${id}, ${name}, ${by}) returning id, name, created_at`
              yield* sql`insert into kb.feeds (project_id) values (${id})`
              yield* sql`insert into kb.task_counters (project_id) values (${id})`
              yield* beginnings
              return rows.map(toProject)
            }).pipe(orDie)
          )
          .pipe(
            Effect.flatMap(([project]) =>
              project ? Effect.succeed(project) : Effect.die(new Error("The project was not kept"))
            )
          )
      })

      const rename = Effect.fn("Projects.rename")(function* (name: string) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<StoredRow>`
          update kb.projects set name = ${name} where id = ${projectId} returning id, name, created_at`
        return row && toProject(row)
      }, orDie)

      const list = Effect.fn("Projects.list")(function* (
        ids: ReadonlyArray<ProjectId> | null,
        before: string | undefined,
        limit: number
      ) {
        const rows = yield* sql<StoredRow>`
            select id, name, created_at from kb.list_projects(${ids}::uuid[], ${before ?? null}::uuid, ${limit}::int)`
        return rows.map(toProject)
      }, orDie)

      const holdSettings = Effect.map(held, defineSettings)

      return Projects.of({ create, find, rename, settings, holdSettings, changeSettings, list })
    })
  )
}

interface KeptSettings {
  readonly settings: ProjectSettingsPatch
}

interface StoredRow {
  readonly id: ProjectId
  readonly name: string
  readonly createdAt: Date
}

const toProject = (row: StoredRow): ProjectRow => ({
  id: row.id,
  name: row.name,
  createdAt: row.createdAt.toISOString()
})

/**
 * Projects, the tenants: every row of every other table belongs to one.
 *
 * A project is created together with its counter rows. The list uses a function that crosses projects and returns names
 * only.
 */
import type { Role } from "@tropism/api/authorization"
import type { Member, MemberInput } from "@tropism/api/members-api"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import {
  defineSettings,
  patchSettings,
  type ProjectSettings,
  type ProjectSettingsPatch
} from "@tropism/domain/project-settings"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"

export interface ProjectRow {
  readonly id: ProjectId
  readonly name: string
  readonly createdAt: string
}

export class Projects extends Context.Service<
  Projects,
  {
    /** Creates a project and its initial rows in one transaction. */
    readonly create: (
      name: string,
      by: UserId,
      beginnings: Effect.Effect<unknown, never, ProjectTransaction>
    ) => Effect.Effect<ProjectRow>
    /** The project of this transaction; undefined when it does not exist. */
    readonly find: Effect.Effect<ProjectRow | undefined, never, ProjectTransaction>
    /** The settings of this transaction's project, with every default filled in. */
    readonly settings: Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** The settings, locked for the rest of the transaction. */
    readonly holdSettings: Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** Changes the settings of this transaction's project and returns them. */
    readonly changeSettings: (
      patch: ProjectSettingsPatch
    ) => Effect.Effect<ProjectSettings, never, ProjectTransaction>
    /** Renames this transaction's project; undefined when it does not exist. */
    readonly rename: (name: string) => Effect.Effect<ProjectRow | undefined, never, ProjectTransaction>
    /** Lists projects newest first; null ids mean all. */
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

// Members of a project and their roles.
//
// Ending a membership deletes the member's tokens and sign-in links of the project in the same transaction, so a returning
// member starts without any.

/** A project keeps at least one admin; without one no member could be added. */
export class LastAdmin extends Schema.TaggedError<LastAdmin>()("LastAdmin", { userId: Schema.String }) {}

export class Members extends Context.Service<
  Members,
  {
    /** Adds a member; undefined when the user is one already. */
    readonly add: (
      input: MemberInput,
      by: UserId
    ) => Effect.Effect<Member | undefined, never, ProjectTransaction>
    /** Returns a member; undefined when there is none. */
    readonly get: (userId: UserId) => Effect.Effect<Member | undefined, never, ProjectTransaction>
    /** Lists members in id order, after one of them. */
    readonly list: (
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Member>, never, ProjectTransaction>
    /** Changes a member's role; undefined when there is no such member. */
    readonly change: (
      userId: UserId,
      role: Role,
      by: UserId
    ) => Effect.Effect<Member | undefined, LastAdmin, ProjectTransaction>
    /** Ends a membership and its tokens; false when there was none. */
    readonly remove: (userId: UserId) => Effect.Effect<boolean, LastAdmin, ProjectTransaction>
  }
>()("@tropism/server/database/Members") {
  static readonly layer = Layer.effect(
    Members,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = sql.literal("user_id, role, added_by, changed_by, created_at, updated_at")
      const one = (rows: ReadonlyArray<StoredMember>) => rows[0] && toMember(rows[0])

      const add = Effect.fn("Members.add")(function* ({ role, userId }: MemberInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        return one(
          yield* sql<StoredMember>`
            insert into kb.members (project_id, user_id, role, added_by, changed_by)
            values (${projectId}, ${userId}, ${role}, ${by}, ${by}) on conflict do nothing returning ${columns}`
        )
      }, orDie)

      const get = Effect.fn("Members.get")(function* (userId: UserId) {
        const { projectId } = yield* ProjectTransaction
        return one(
          yield* sql<StoredMember>`
            select ${columns} from kb.members where project_id = ${projectId} and user_id = ${userId}`
        )
      }, orDie)

      const list = Effect.fn("Members.list")(function* (after: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<StoredMember>`
          select ${columns} from kb.members
          where project_id = ${projectId} and user_id > ${after ?? ""} order by user_id limit ${limit}`
        return rows.map(toMember)
      }, orDie)

      /** Refuses to demote the only admin. Locks the project's row, so that of two admins one remains. */
      const spareAdmin = Effect.fnUntraced(function* (userId: UserId) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`select 1 from kb.projects where id = ${projectId} for no key update`
        const admins = yield* sql<{ userId: UserId }>`
          select user_id from kb.members where project_id = ${projectId} and role = 'admin' order by user_id limit 2`
        if (admins.length === 1 && admins[0]?.userId === userId) return yield* new LastAdmin({ userId })
      })

      const change = Effect.fn("Members.change")(function* (userId: UserId, role: Role, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        if (role !== "admin") yield* spareAdmin(userId)
        return one(
          yield* sql<StoredMember>`
            update kb.members set role = ${role}, changed_by = ${by}, updated_at = now()
            where project_id = ${projectId} and user_id = ${userId} returning ${columns}`
        )
      }, orDie)

      const remove = Effect.fn("Members.remove")(function* (userId: UserId) {
        const { projectId } = yield* ProjectTransaction
        yield* spareAdmin(userId)
        const gone = yield* sql`
          delete from kb.members where project_id = ${projectId} and user_id = ${userId} returning user_id`
        // A sign-in by link that just committed has created a token, which the next statement sees.
        yield* sql`select kb.end_member_codes(${userId})`
        yield* sql`select kb.end_tokens(null, ${userId})`
        yield* sql`delete from kb.mcp_grants where project_id = ${projectId} and user_id = ${userId}`
        yield* sql`delete from kb.mcp_sign_ins where project_id = ${projectId} and asked_by = ${userId}`
        return gone.length > 0
      }, orDie)

      return Members.of({ add, get, list, change, remove })
    })
  )
}

interface StoredMember {
  readonly userId: UserId
  readonly role: Role
  readonly addedBy: UserId | null
  readonly changedBy: UserId | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const toMember = (row: StoredMember): Member => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

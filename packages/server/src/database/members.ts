/**
 * Who belongs to a project, and with which role.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * With a membership end the member's tokens of this project and the links that
 * were made for them, in the same transaction: somebody who comes back begins
 * without any.
 */
import type { Member, MemberInput } from "@tropism/api/members-api"
import type { Role } from "@tropism/api/authorization"
import type { UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "./database.ts"

/** A project whose members have an admin keeps one: nobody could let others in any more. */
export class LastAdmin extends Schema.TaggedError<LastAdmin>()("LastAdmin", { userId: Schema.String }) {}

export class Members extends Context.Service<
  Members,
  {
    /** Lets somebody in; undefined when they are a member already. */
    readonly add: (
      input: MemberInput,
      by: UserId
    ) => Effect.Effect<Member | undefined, never, ProjectTransaction>
    /** The member of this id; undefined when there is none. */
    readonly get: (userId: UserId) => Effect.Effect<Member | undefined, never, ProjectTransaction>
    /** Members in the order of their ids, behind one of them. */
    readonly list: (
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Member>, never, ProjectTransaction>
    /** Gives a member another role; undefined when there is no such member. */
    readonly change: (
      userId: UserId,
      role: Role,
      by: UserId
    ) => Effect.Effect<Member | undefined, LastAdmin, ProjectTransaction>
    /** Ends a membership with its tokens; false when there was none. */
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

      /** Refuses to take the role from the only admin. The project's row is held, so that of two admins one stays. */
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
        // Whoever came in by a link a moment ago has a token, which the next statement sees.
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

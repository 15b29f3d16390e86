/**
 * Stores people's conversations: owner, agent and title.
 *
 * **Invariant**: every query names the owner, so another person's conversation is a missing one. The messages are in the log of the context
 * and nowhere else.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import type { Conversation } from "@tropism/domain/conversation"
import type { AgentId, ConversationId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { PromptFailed } from "../agents/template.ts"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { ContextBeginnings } from "../reactions/new-contexts.ts"
import { chatLimits } from "./limits.ts"

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

/** A conversation in a list, with its position there. */
export interface PlacedConversation {
  readonly item: Conversation
  readonly place: string
}

/** The format of a position: an instant in microseconds, and an id. */
export const conversationPlaces = /^\d{1,18}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class Conversations extends Context.Service<
  Conversations,
  {
    /** Starts a conversation with an agent, in a private context. */
    readonly begin: (agent: Agent, title: string, of: UserId) => InProject<Conversation, PromptFailed>
    /**
     * This person's conversation, locked for the rest of the transaction; undefined alike if it is another person's, deleted or missing.
     */
    readonly find: (id: ConversationId, of: UserId) => InProject<Conversation | undefined>
    /** A conversation with its owner; undefined alike if it is deleted or missing. */
    readonly look: (
      id: ConversationId
    ) => InProject<{ readonly conversation: Conversation; readonly owner: UserId } | undefined>
    /** A person's own after a position, the most recently used first; optionally with one agent. */
    readonly list: (
      of: UserId,
      agentId: AgentId | undefined,
      after: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<PlacedConversation>>
    /** Sets the title; undefined where `find` would find none. */
    readonly rename: (id: ConversationId, of: UserId, title: string) => InProject<Conversation | undefined>
    /** Deletes it: no list shows it and nothing continues it. Returns it. */
    readonly remove: (id: ConversationId, of: UserId) => InProject<Conversation | undefined>
    /**
     * Locks the conversation of a context against deletion in this transaction, and returns whether it is deleted; undefined for a context
     * without one.
     */
    readonly hold: (
      name: ContextName,
      isSpokenIn: boolean
    ) => InProject<{ readonly isDeleted: boolean } | undefined>
    /** Records that it was used now. */
    readonly touch: (id: ConversationId) => InProject<void>
  }
>()("@tropism/server/chat/Conversations") {
  static readonly layer = Layer.effect(
    Conversations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const beginnings = yield* ContextBeginnings

      const begin = Effect.fn("Conversations.begin")(function* (agent: Agent, title: string, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const id = (yield* ids.next) as ConversationId
        // The name contains a fresh id.
        const { name } = yield* Effect.catchTag(
          beginnings.open(ContextName.make(`chat-${id}`), agent, of),
          "ContextExists",
          Effect.die
        )
        const row = yield* Effect.flatMap(
          sql<ConversationRow>`
            insert into kb.conversations (id, project_id, user_id, agent_id, context_name, title)
            values (${id}, ${projectId}, ${of}, ${agent.id}, ${name}, ${title}) returning *`,
          onlyRow
        ).pipe(orDie)
        return toConversation(row)
      })

      const find = Effect.fn("Conversations.find")(function* (id: ConversationId, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ConversationRow>`
          select * from kb.conversations
          where project_id = ${projectId} and id = ${id} and user_id = ${of} and deleted_at is null for no key update`
        return row && toConversation(row)
      }, orDie)

      const look = Effect.fn("Conversations.look")(function* (id: ConversationId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ConversationRow>`
          select * from kb.conversations where project_id = ${projectId} and id = ${id} and deleted_at is null`
        return row && { conversation: toConversation(row), owner: row.userId }
      }, orDie)

      const list = Effect.fn("Conversations.list")(function* (
        of: UserId,
        agentId: AgentId | undefined,
        after: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        // An instant in microseconds, which JavaScript numbers hold exactly, and an id.
        const [micros, id] = after?.split(".") ?? []
        const rows = yield* sql<ConversationRow & { readonly micros: string }>`
          select *, (extract(epoch from updated_at) * 1000000)::bigint::text as micros from kb.conversations
          where ${sql.and([
            sql`project_id = ${projectId} and user_id = ${of} and deleted_at is null`,
            ...(agentId === undefined ? [] : [sql`agent_id = ${agentId}`]),
            ...(micros === undefined || id === undefined
              ? []
              : [
                  sql`(updated_at, id) < (timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', ${id}::uuid)`
                ])
          ])} order by updated_at desc, id desc limit ${limit}`
        return rows.map((row): PlacedConversation => ({
          item: toConversation(row),
          place: `${row.micros}.${row.id}`
        }))
      }, orDie)

      const rename = Effect.fn("Conversations.rename")(function* (
        id: ConversationId,
        of: UserId,
        title: string
      ) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ConversationRow>`
          update kb.conversations set title = ${title}, updated_at = clock_timestamp()
          where project_id = ${projectId} and id = ${id} and user_id = ${of} and deleted_at is null returning *`
        return row && toConversation(row)
      }, orDie)

      const remove = Effect.fn("Conversations.remove")(function* (id: ConversationId, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ConversationRow>`
          update kb.conversations set deleted_at = clock_timestamp()
          where project_id = ${projectId} and id = ${id} and user_id = ${of} and deleted_at is null returning *`
        return row && toConversation(row)
      }, orDie)

      const hold = Effect.fn("Conversations.hold")(function* (name: ContextName, isSpokenIn: boolean) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly isDeleted: boolean }>`
          update kb.conversations set updated_at = case when ${isSpokenIn} and deleted_at is null then clock_timestamp() else updated_at end
          where project_id = ${projectId} and context_name = ${name} returning deleted_at is not null as is_deleted`
        return row
      }, orDie)

      const touch = Effect.fn("Conversations.touch")(function* (id: ConversationId) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`update kb.conversations set updated_at = clock_timestamp() where project_id = ${projectId} and id = ${id}`
      }, orDie)

      return Conversations.of({ begin, find, look, list, rename, remove, hold, touch })
    })
  )
}

interface ConversationRow extends Omit<Conversation, "createdAt" | "updatedAt"> {
  readonly userId: UserId
  readonly createdAt: Date
  readonly updatedAt: Date
}

const toConversation = ({
  agentId,
  contextName,
  createdAt,
  id,
  title,
  updatedAt
}: ConversationRow): Conversation => ({
  id,
  agentId,
  contextName,
  title,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString()
})

// Retention of contexts of clients that send the whole history with each request.
//
// Such a client rarely returns to one, so each has a purge date, which moves with every message. A writer locks its row and the sweep skips
// locked rows, so nothing is written to a log that is being purged.

export class BroughtContexts extends Context.Service<
  BroughtContexts,
  {
    /** Schedules a context for purging when it is unused. */
    readonly keep: (name: ContextName) => InProject<void>
    /**
     * Locks a context against purging in this transaction, and postpones its purge where a message is added; false when it is already
     * purged.
     */
    readonly hold: (name: ContextName, isSpokenIn: boolean) => InProject<boolean>
    /** Purges some unneeded contexts of all projects, in its own transaction; returns how many, and whether there may be more. */
    readonly forget: Effect.Effect<{ readonly count: number; readonly hasMore: boolean }>
  }
>()("@tropism/server/chat/BroughtContexts") {
  static readonly layer = Layer.effect(
    BroughtContexts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inSeconds = (ms: number) => sql`make_interval(secs => ${ms / 1_000}::float8)`

      const keep = Effect.fn("BroughtContexts.keep")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.brought_contexts (project_id, context_name, due_at)
          values (${projectId}, ${name}, now() + ${inSeconds(chatLimits.broughtKeepMs)})`
      }, orDie)

      const hold = Effect.fn("BroughtContexts.hold")(function* (name: ContextName, isSpokenIn: boolean) {
        const { projectId } = yield* ProjectTransaction
        const { broughtKeepMs, broughtWaitMs } = chatLimits
        yield* sql`
          update kb.brought_contexts
          set due_at = greatest(due_at, now() + ${inSeconds(isSpokenIn ? broughtKeepMs : broughtWaitMs)})
          where project_id = ${projectId} and context_name = ${name}`
        // A separate statement, so that it sees what the sweep did that this one waited for.
        const rows = yield* sql`
          select 1 from kb.contexts where project_id = ${projectId} and name = ${name} and forgotten_at is null`
        return rows.length > 0
      }, orDie)

      // Due contexts may all be needed and postponed, so the count does not show whether there are more. Only a transaction that found none
      // has no id.
      const forget = sql<{ readonly count: number; readonly hasMore: boolean }>`
        with swept as materialized (
          select kb.forget_brought_contexts(${chatLimits.broughtWaitMs / 1_000}::float8, ${chatLimits.forgetBatchContexts}::int) as count
        ) select count, pg_current_xact_id_if_assigned() is not null as has_more from swept`.pipe(
        Effect.flatMap(onlyRow),
        orDie
      )

      return BroughtContexts.of({ keep, hold, forget })
    })
  )
}

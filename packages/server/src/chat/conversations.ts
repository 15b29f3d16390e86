/**
 * The conversations of persons: whose they are, with whom, and what they are called.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * What is said in one is the log of its context and stands nowhere else. Every
 * query names the person, so a conversation of somebody else is one that is not
 * there.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Conversation } from "@tropism/domain/conversation"
import { ContextName } from "@tropism/domain/context-event"
import type { ConversationId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { PromptFailed } from "../agent/template.ts"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { ContextBeginnings } from "../dispatch/context-beginnings.ts"
import { Ids } from "../ids.ts"

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Conversations extends Context.Service<
  Conversations,
  {
    /** Begins a conversation of a person with an agent, in a context that is theirs alone. */
    readonly begin: (agent: Agent, title: string, of: UserId) => InProject<Conversation, PromptFailed>
    /** A conversation of this person; undefined alike for one of somebody else, a deleted one and one that never was. */
    readonly find: (id: ConversationId, of: UserId) => InProject<Conversation | undefined>
    /** Says that something was said in it now. */
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
        // The name holds an id that nobody else has.
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
          where project_id = ${projectId} and id = ${id} and user_id = ${of} and deleted_at is null`
        return row && toConversation(row)
      }, orDie)

      const touch = Effect.fn("Conversations.touch")(function* (id: ConversationId) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`update kb.conversations set updated_at = clock_timestamp() where project_id = ${projectId} and id = ${id}`
      }, orDie)

      return Conversations.of({ begin, find, touch })
    })
  )
}

interface ConversationRow extends Omit<Conversation, "createdAt" | "updatedAt"> {
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

/**
 * Responses of OpenAI's Responses API: each is a place in the log of a context that belongs to one person.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * A row is written with what was said and never changes, but that it stops being stored. A response ends where the next one of
 * its context begins, stored or not.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { AgentId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"

/** What a request says of its response, as the response repeats it. */
export const ResponseTerms = Schema.Struct({
  model: Schema.String,
  background: Schema.Boolean,
  conversation: Schema.NullOr(Schema.String),
  instructions: Schema.NullOr(Schema.String),
  maxOutputTokens: Schema.NullOr(Schema.Int),
  metadata: Schema.Record(Schema.String, Schema.String),
  previousId: Schema.NullOr(Schema.String),
  isStored: Schema.Boolean,
  temperature: Schema.NullOr(Schema.Finite),
  toolChoice: Schema.Literals(["auto", "none"]),
  /** The end of the system prompt that the next response takes away: instructions are of one response. */
  promptEnd: Schema.NullOr(Schema.String)
})
export type ResponseTerms = typeof ResponseTerms.Type

/** Where a response is, and what was asked of it. */
export interface PlacedResponse {
  readonly id: string
  readonly context: ContextName
  readonly agentId: AgentId
  /** The last event before the request. */
  readonly beginsAfter: number
  /** The event after which the answer comes. */
  readonly number: number
  readonly isAnswer: boolean
  readonly terms: ResponseTerms
  readonly createdAt: Date
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class Responses extends Context.Service<
  Responses,
  {
    /** Keeps a response, in the transaction that says what it answers; returns when that was. */
    readonly keep: (response: Omit<PlacedResponse, "agentId" | "createdAt">) => InProject<Date>
    /** A stored response of this person; undefined alike for what is somebody else's, deleted, forgotten or not there. */
    readonly find: (id: string, of: UserId) => InProject<PlacedResponse | undefined>
    /** The response after this one in its context, stored or not. */
    readonly next: (
      response: PlacedResponse
    ) => InProject<Pick<PlacedResponse, "beginsAfter" | "isAnswer"> | undefined>
    /** The instructions at the end of a context's system prompt that its newest response has brought. */
    readonly lastPromptEnd: (context: ContextName) => InProject<string | null>
    /** Stops storing a response of this person; false where there is none. */
    readonly remove: (id: string, of: UserId) => InProject<boolean>
  }
>()("@tropism/server/chat/Responses") {
  static readonly layer = Layer.effect(
    Responses,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const keep = Effect.fn("Responses.keep")(function* ({
        beginsAfter,
        context,
        id,
        isAnswer,
        number,
        terms
      }: Omit<PlacedResponse, "agentId" | "createdAt">) {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<{ readonly createdAt: Date }>`
            insert into kb.responses (project_id, id, context_name, begins_after, number, is_answer, is_stored, terms)
            values (${projectId}, ${id}, ${context}, ${beginsAfter}, ${number}, ${isAnswer}, ${terms.isStored},
              ${JSON.stringify(terms)}::text::jsonb) returning created_at`,
          onlyRow
        )
        return row.createdAt
      }, orDie)

      /** Whose context it is, is theirs; what was deleted or forgotten is not there. */
      const isOf = (of: UserId) => sql`
        response.is_stored and exists (
          select from kb.contexts context
          where context.project_id = response.project_id and context.name = response.context_name
            and context.owner = ${of} and context.forgotten_at is null)
        and not exists (
          select from kb.conversations conversation
          where conversation.project_id = response.project_id and conversation.context_name = response.context_name
            and conversation.deleted_at is not null)`

      const find = Effect.fn("Responses.find")(function* (id: string, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<Omit<PlacedResponse, "terms"> & { readonly terms: unknown }>`
          select response.id, response.context_name as context, context.agent_id, response.begins_after, response.number,
            response.is_answer, response.terms, response.created_at
          from kb.responses response
          join kb.contexts context on context.project_id = response.project_id and context.name = response.context_name
          where response.project_id = ${projectId} and response.id = ${id} and ${isOf(of)}`
        if (row === undefined) return undefined
        const found: PlacedResponse = { ...row, terms: yield* Effect.orDie(decodeTerms(row.terms)) }
        return found
      }, orDie)

      const next = Effect.fn("Responses.next")(function* ({ context, number }: PlacedResponse) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<Pick<PlacedResponse, "beginsAfter" | "isAnswer">>`
          select begins_after, is_answer from kb.responses
          where project_id = ${projectId} and context_name = ${context} and number > ${number}
          order by number limit 1`
        return row
      }, orDie)

      const lastPromptEnd = Effect.fn("Responses.lastPromptEnd")(function* (context: ContextName) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly promptEnd: string | null }>`
          select terms ->> 'promptEnd' as prompt_end from kb.responses
          where project_id = ${projectId} and context_name = ${context} order by number desc limit 1`
        return row?.promptEnd ?? null
      }, orDie)

      const remove = Effect.fn("Responses.remove")(function* (id: string, of: UserId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.responses response set is_stored = false, 
            terms = terms || '{"metadata": {}, "instructions": null, "isStored": false}'::jsonb
          where response.project_id = ${projectId} and response.id = ${id} and ${isOf(of)} returning 1`
        return rows.length > 0
      }, orDie)

      return Responses.of({ keep, find, next, lastPromptEnd, remove })
    })
  )
}

const decodeTerms = Schema.decodeUnknownEffect(ResponseTerms)

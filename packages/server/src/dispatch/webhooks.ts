/**
 * The webhooks of agents: made, listed, rotated, revoked, and found by their address.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A webhook is found before its project is known, by a function that answers
 * where it belongs and what its deliveries are checked with. What a delivery
 * begins is `deliveries.ts`'s.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentId, ProjectId, UserId, WebhookId } from "@tropism/domain/ids"
import { type OpenedWebhook, type Webhook, webhookBounds, type WebhookInput } from "@tropism/domain/webhook"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { lastId, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/turns.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { keyOf, signingSecretOf } from "./webhook-signature.ts"

/** Why an agent gets no webhook. */
export class WebhookRefused extends Schema.TaggedError<WebhookRefused>()("WebhookRefused", {
  detail: Schema.String
}) {}

/** Where a webhook belongs, and the keys that its deliveries may be signed with. */
export interface FoundWebhook {
  readonly projectId: ProjectId
  readonly keys: ReadonlyArray<string>
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

/** Its address is the door's to say. */
export type KeptWebhook = Omit<Webhook, "url">
export type NewWebhook = Omit<OpenedWebhook, "url">

export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** Makes one for an agent that webhooks trigger; its token is in this answer and nowhere else. */
    readonly create: (
      agent: Agent,
      input: WebhookInput,
      by: UserId
    ) => Effect.Effect<NewWebhook, WebhookRefused, ProjectTransaction>
    /** Those of an agent that are not revoked, newest first. */
    readonly list: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<KeptWebhook>>
    /** Gives another token; undefined when there is no such webhook. */
    readonly rotate: (agentId: AgentId, id: WebhookId, graceSeconds: number) => Read<NewWebhook | undefined>
    /** Ends it at once. False when there is no such webhook. */
    readonly revoke: (agentId: AgentId, id: WebhookId) => Read<boolean>
    /** Finds a webhook that can be delivered to, whatever its project. */
    readonly find: (id: string) => Effect.Effect<FoundWebhook | undefined>
  }
>()("@tropism/server/dispatch/Webhooks") {
  static readonly layer = Layer.effect(
    Webhooks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids

      const opened = (row: WebhookRow, token: string): NewWebhook => ({
        ...toWebhook(row),
        token,
        signingSecret: signingSecretOf(token)
      })

      const create = Effect.fn("Webhooks.create")(function* (agent: Agent, input: WebhookInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        if (agent.triggerType !== "webhook")
          return yield* new WebhookRefused({
            detail: `The trigger of the agent ${agent.name} is ${agent.triggerType}: set triggerType to webhook first`
          })
        // The agent's row is held, so that two requests do not both take the last place.
        yield* sql`select 1 from kb.agents where id = any(${inTurn(sql, "agent", sql`select ${agent.id}::uuid`, "alone")}) for no key update`
        const [kept] = yield* sql<{ count: number }>`
          select count(*)::int as count from kb.webhooks where agent_id = ${agent.id} and revoked_at is null`
        if ((kept?.count ?? 0) >= dispatchLimits.webhooksPerAgent)
          return yield* new WebhookRefused({
            detail: `The agent ${agent.name} has ${dispatchLimits.webhooksPerAgent} webhooks, as many as it may have: revoke one first`
          })
        const [id, token] = [yield* ids.next, yield* ids.secret]
        const rate = input.ratePerMinute ?? webhookBounds.ratePerMinute
        const row = yield* Effect.flatMap(
          sql<WebhookRow>`
            insert into kb.webhooks (id, project_id, agent_id, name, token_hash, rate_per_minute, tokens_left, untrusted, created_by)
            values (${id}, ${projectId}, ${agent.id}, ${input.name ?? "webhook"}, ${keyOf(token)}, ${rate}, ${rate}, ${input.untrusted ?? false}, ${by})
            returning *`,
          onlyRow
        )
        return opened(row, token)
      }, orDie)

      const list = Effect.fn("Webhooks.list")(function* (
        agentId: AgentId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<WebhookRow>`
          select * from kb.webhooks where agent_id = ${agentId} and project_id = ${projectId} and revoked_at is null
            and id < ${before ?? lastId} order by id desc limit ${limit}`
        return rows.map(toWebhook)
      }, orDie)

      const rotate = Effect.fn("Webhooks.rotate")(function* (
        agentId: AgentId,
        id: WebhookId,
        graceSeconds: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const token = yield* ids.secret
        const [row] = yield* sql<WebhookRow>`
          update kb.webhooks set token_hash = ${keyOf(token)},
            previous_token_hash = case when ${graceSeconds}::int > 0 then token_hash end,
            previous_valid_until = case when ${graceSeconds}::int > 0 then now() + make_interval(secs => ${graceSeconds}::int) end
          where id = ${id} and agent_id = ${agentId} and project_id = ${projectId} and revoked_at is null returning *`
        return row && opened(row, token)
      }, orDie)

      const revoke = Effect.fn("Webhooks.revoke")(function* (agentId: AgentId, id: WebhookId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.webhooks set revoked_at = now()
          where id = ${id} and agent_id = ${agentId} and project_id = ${projectId} and revoked_at is null returning id`
        return rows.length > 0
      }, orDie)

      const find = Effect.fn("Webhooks.find")(function* (id: string) {
        if (!uuid.test(id)) return undefined
        const [row] = yield* sql<{
          projectId: ProjectId
          tokenHash: string
          previousTokenHash: string | null
        }>`select project_id, token_hash, previous_token_hash from kb.find_webhook(${id}::uuid)`
        if (!row) return undefined
        const { previousTokenHash, projectId, tokenHash } = row
        return { projectId, keys: previousTokenHash === null ? [tokenHash] : [tokenHash, previousTokenHash] }
      }, orDie)

      return Webhooks.of({ create, list, rotate, revoke, find })
    })
  )
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

interface WebhookRow {
  readonly id: WebhookId
  readonly agentId: AgentId
  readonly name: string
  readonly ratePerMinute: number
  readonly untrusted: boolean
  readonly createdBy: string
  readonly createdAt: Date
  readonly lastDeliveryAt: Date | null
  readonly previousValidUntil: Date | null
}

const toWebhook = (row: WebhookRow): KeptWebhook => ({
  id: row.id,
  agentId: row.agentId,
  name: row.name,
  ratePerMinute: row.ratePerMinute,
  untrusted: row.untrusted,
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
  lastDeliveryAt: row.lastDeliveryAt?.toISOString() ?? null,
  previousTokenUntil: row.previousValidUntil?.toISOString() ?? null
})

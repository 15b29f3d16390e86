/**
 * Manages the webhooks of agents and accepts their deliveries.
 *
 * A webhook is found before its project is known, by a function that returns its project and the keys to verify its deliveries.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import type { AgentId, ProjectId, UserId, WebhookId, GraphEventId, RunId } from "@tropism/domain/ids"
import {
  type OpenedWebhook,
  type Webhook,
  webhookBounds,
  type WebhookInput,
  type Delivery
} from "@tropism/domain/webhook"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { lastId, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Admission, type TriggerRefused } from "../runs/admission.ts"
import { Runs } from "../runs/run-store.ts"

/** Why an agent gets no webhook. */
export class WebhookRefused extends Schema.TaggedError<WebhookRefused>()("WebhookRefused", {
  detail: Schema.String
}) {}

/** The project of a webhook, and the keys that may sign its deliveries. */
export interface FoundWebhook {
  readonly projectId: ProjectId
  readonly keys: ReadonlyArray<string>
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

/** The endpoint adds the URL. */
export type KeptWebhook = Omit<Webhook, "url">
export type NewWebhook = Omit<OpenedWebhook, "url">

export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** Creates one for an agent with a webhook trigger; only this response contains the token. */
    readonly create: (
      agent: Agent,
      input: WebhookInput,
      by: UserId
    ) => Effect.Effect<NewWebhook, WebhookRefused, ProjectTransaction>
    /** Returns an agent's webhooks that are not revoked, newest first. */
    readonly list: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<KeptWebhook>>
    /** Issues a new token; undefined when there is no such webhook. */
    readonly rotate: (agentId: AgentId, id: WebhookId, graceSeconds: number) => Read<NewWebhook | undefined>
    /** Revokes it at once; false when there is no such webhook. */
    readonly revoke: (agentId: AgentId, id: WebhookId) => Read<boolean>
    /** Finds an active webhook in any project. */
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
        // The agent's row is locked, so that two requests cannot both take the last place.
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

// Verifies that a delivery was signed with the webhook's token.
//
// As in Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`. The key is the SHA-256 of the token, and only this hash is stored. The
// comparison takes constant time.

/** A delivery as received. */
export interface SignedDelivery {
  readonly id: string
  readonly timestamp: string
  readonly body: Uint8Array
  /** One or more `v1,BASE64`, separated by spaces. */
  readonly signature: string
}

/** Whether one of the signatures was made with one of the keys; keys are hexadecimal hashes of tokens. */
export const isSignedBy = (delivery: SignedDelivery, keys: ReadonlyArray<string>): boolean => {
  const given = delivery.signature
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .slice(0, dispatchLimits.webhookSignatures)
    .map((signature) => Buffer.from(signature.slice(3), "base64"))
  const expected = keys.map((key) => signatureOf(delivery, key))
  return given.some((one) =>
    expected.some((right) => one.length === right.length && timingSafeEqual(one, right))
  )
}

/** Signs a message with a hexadecimal key. */
export const signatureOf = (
  { body, id, timestamp }: Omit<SignedDelivery, "signature">,
  key: string
): Buffer => createHmac("sha256", Buffer.from(key, "hex")).update(`${id}.${timestamp}.`).update(body).digest()

/** Returns the hexadecimal hash of a token, which is stored and which signs deliveries. */
const keyOf = (token: string): string => createHash("sha256").update(token, "utf8").digest("hex")

/** Returns the key in the form that libraries for Standard Webhooks accept. */
const signingSecretOf = (token: string): string =>
  `whsec_${Buffer.from(keyOf(token), "hex").toString("base64")}`

// Starts one run for each delivery id of a sender.
//
// The webhook's row is locked first, so deliveries of one webhook are serialized: its rate is counted there, and a repeated id finds the
// first delivery. The delivery, its run and its share of the rate are one transaction; a refusal writes nothing, so the sender may deliver
// the same id again.

/** Why a verified delivery started no run. */
export class DeliveryRefused extends Schema.TaggedError<DeliveryRefused>()("DeliveryRefused", {
  reason: Schema.Literals(["gone", "rate", "trigger"]),
  detail: Schema.String,
  /** For `rate`: when a delivery is allowed again. */
  retryAfterSeconds: Schema.Int
}) {}

interface HeldWebhook {
  readonly agentId: AgentId
  readonly ratePerMinute: number
  readonly untrusted: boolean
  /** The number of deliveries allowed now. */
  readonly room: number
}

export class Deliveries extends Context.Service<
  Deliveries,
  {
    /** Queues the run of a delivery, or returns the run of an earlier delivery with the same id. */
    readonly accept: (
      webhookId: WebhookId,
      deliveryId: string,
      input: Schema.Json | undefined
    ) => Effect.Effect<Delivery, DeliveryRefused | TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Deliveries") {
  static readonly layer = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents
      const admission = yield* Admission
      const runs = yield* Runs
      const ids = yield* Ids

      /** Uses the clock and not the transaction's start, so that time spent waiting for the row counts towards the rate. */
      const hold = Effect.fnUntraced(function* (id: WebhookId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<HeldWebhook>`
          select agent_id, rate_per_minute, untrusted,
            least(rate_per_minute, tokens_left + extract(epoch from clock_timestamp() - tokens_counted_at) / 60 * rate_per_minute)::float8 as room
          from kb.webhooks where id = ${id} and project_id = ${projectId} and revoked_at is null for no key update`
        return row ?? (yield* refuse("gone", "The webhook was revoked"))
      })

      const findRun = Effect.fnUntraced(function* (id: WebhookId, deliveryId: string) {
        const [row] = yield* sql<{ runId: RunId }>`
          select run_id from kb.webhook_deliveries where webhook_id = ${id} and delivery_id = ${deliveryId}`
        return row?.runId
      })

      const record = Effect.fnUntraced(function* (
        id: WebhookId,
        deliveryId: string,
        runId: RunId,
        room: number
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.webhook_deliveries (webhook_id, delivery_id, project_id, run_id)
          values (${id}, ${deliveryId}, ${projectId}, ${runId})`
        yield* sql`
          update kb.webhooks set tokens_left = ${room - 1}, tokens_counted_at = clock_timestamp(), last_delivery_at = now() where id = ${id}`
        // Delete a few old deliveries with each new one, so that the table follows the incoming rate.
        yield* sql`
          delete from kb.webhook_deliveries where webhook_id = ${id} and delivery_id in (
            select delivery_id from kb.webhook_deliveries
            where webhook_id = ${id} and received_at < now() - make_interval(secs => ${dispatchLimits.deliveryKeptSeconds}::int)
            order by received_at limit ${dispatchLimits.deliveriesForgotten})`
      })

      const accept = Effect.fn("Deliveries.accept")(function* (
        webhookId: WebhookId,
        deliveryId: string,
        input: Schema.Json | undefined
      ) {
        const { agentId, ratePerMinute, room, untrusted } = yield* hold(webhookId)
        const known = yield* findRun(webhookId, deliveryId)
        if (known) return { runId: known, repeated: true }
        if (room < 1)
          return yield* refuse(
            "rate",
            `The webhook takes ${ratePerMinute} deliveries a minute, and had them: deliver this one again later`,
            Math.ceil(((1 - room) * 60) / ratePerMinute)
          )
        yield* admission.places(agentId)
        const agent = yield* agents.get(agentId)
        if (agent?.triggerType !== "webhook")
          return yield* refuse(
            "trigger",
            `Webhooks do not trigger this agent: its trigger is ${agent?.triggerType}`
          )
        const runId = (yield* ids.next) as RunId
        yield* runs.queue([
          {
            id: runId,
            agentId,
            agentVersion: agent.version,
            trigger: {
              type: "webhook",
              ...(input === undefined ? {} : { input }),
              delivery: { webhookId, id: deliveryId }
            },
            contextName: ContextName.make(`run-${runId}`),
            // A webhook's run is the root of a chain of its own, named after its first run.
            rootEventId: runId as string as GraphEventId,
            depth: 0,
            userId: null,
            dueAt: null,
            ...(untrusted ? { taintedBy: [{ kind: "webhook", id: webhookId, at: 0 }] } : {})
          }
        ])
        yield* record(webhookId, deliveryId, runId, room)
        return { runId, repeated: false }
      }, orDie)

      return Deliveries.of({ accept })
    })
  )
}

const refuse = (reason: DeliveryRefused["reason"], detail: string, retryAfterSeconds = 0) =>
  Effect.fail(new DeliveryRefused({ reason, detail, retryAfterSeconds }))

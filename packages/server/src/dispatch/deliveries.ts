/**
 * What a delivery to a webhook begins: one run for each id that a sender gives.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * The webhook's row is held first, so deliveries of one webhook come one after
 * another: its rate is counted there, and a second delivery of an id finds the
 * first. The delivery, its run and what it took of the rate are one transaction;
 * a refusal leaves nothing, so the sender may deliver the same id again.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { AgentId, GraphEventId, RunId, WebhookId } from "@tropism/domain/ids"
import type { Delivery } from "@tropism/domain/webhook"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agent/agents.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Runs } from "../run/runs.ts"
import { Admission, type TriggerRefused } from "../run/admission.ts"

/** Why a delivery with a good signature begins nothing. */
export class DeliveryRefused extends Schema.TaggedError<DeliveryRefused>()("DeliveryRefused", {
  reason: Schema.Literals(["gone", "rate", "trigger"]),
  detail: Schema.String,
  /** For `rate`: when there is room again. */
  retryAfterSeconds: Schema.Int
}) {}

interface HeldWebhook {
  readonly agentId: AgentId
  readonly ratePerMinute: number
  readonly untrusted: boolean
  /** Deliveries that it may take now. */
  readonly room: number
}

export class Deliveries extends Context.Service<
  Deliveries,
  {
    /** Queues the run of a delivery, or answers the run that its id has already. */
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

      /** The clock and not the transaction's time: whoever waited for the row has waited for its rate too. */
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
        // A few of the old ones go with each new one, so that what is kept follows what comes.
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
            // What another system begins is a chain of its own, named after its first run.
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

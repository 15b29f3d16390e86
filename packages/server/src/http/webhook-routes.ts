/**
 * Endpoints for webhooks: manage them, and receive deliveries.
 *
 * **Invariant**: an unknown address, a revoked webhook and a wrong signature get the same answer. Other faults are shown only after a valid
 * signature.
 */
import { Api } from "@tropism/api/api"
import { Conflict, Unauthorized } from "@tropism/api/problems"
import type { WebhookId } from "@tropism/domain/ids"
import { Clock, Effect, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agents/agents.ts"
import { Database } from "../database/database.ts"
import { dispatchLimits, httpLimits } from "../limits.ts"
import {
  Deliveries,
  type DeliveryRefused,
  isSignedBy,
  type SignedDelivery,
  Webhooks
} from "../reactions/webhooks.ts"
import { inProject, reading } from "./access.ts"
import { inputBody } from "./optional-body.ts"
import { originOf } from "./origins.ts"
import { pageById } from "./paging.ts"
import { keepable, orNotFound, tooMany, triggerProblem } from "./problems.ts"
import { judgeEncoding, judgeInput, readBody } from "./request-validation.ts"

const knownAgent = orNotFound("agent")
const knownWebhook = orNotFound("webhook")

/** A webhook with its address, as the caller reaches this server. */
const addressed = <A extends { readonly id: WebhookId }>(webhook: A) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => ({
    ...webhook,
    url: `${originOf(request)}/api/hooks/${webhook.id}`
  }))

export const webhooksHandlers = HttpApiBuilder.group(Api, "webhooks", (handlers) =>
  handlers.handleAll({
    create: Effect.fn("http.webhooks.create")(function* ({ params, payload }) {
      yield* keepable(payload)
      const [agents, webhooks] = [yield* Agents, yield* Webhooks]
      const made = yield* inProject(params.projectId, "admin", ({ userId }) =>
        Effect.gen(function* () {
          const agent = yield* knownAgent(agents.get(params.agentId))
          return yield* Effect.catchTag(
            webhooks.create(agent, payload, userId),
            "WebhookRefused",
            ({ detail }) => Effect.fail(new Conflict({ reason: "state", detail }))
          )
        })
      )
      return yield* addressed(made)
    }),
    list: Effect.fn("http.webhooks.list")(function* ({ params, query }) {
      const [agents, webhooks] = [yield* Agents, yield* Webhooks]
      const page = yield* reading(
        params.projectId,
        Effect.andThen(
          knownAgent(agents.get(params.agentId)),
          pageById(query, (before, limit) => webhooks.list(params.agentId, before, limit))
        )
      )
      return { ...page, items: yield* Effect.forEach(page.items, addressed) }
    }),
    rotate: Effect.fn("http.webhooks.rotate")(function* ({ params, payload }) {
      const webhooks = yield* Webhooks
      const rotated = yield* knownWebhook(
        inProject(params.projectId, "admin", () =>
          webhooks.rotate(params.agentId, params.webhookId, payload.graceSeconds ?? 0)
        )
      )
      return yield* addressed(rotated)
    }),
    revoke: Effect.fn("http.webhooks.revoke")(function* ({ params }) {
      const webhooks = yield* Webhooks
      const revoked = inProject(params.projectId, "admin", () =>
        webhooks.revoke(params.agentId, params.webhookId)
      )
      yield* knownWebhook(Effect.map(revoked, (done) => done || undefined))
    })
  })
)

export const deliveriesHandlers = HttpApiBuilder.group(Api, "deliveries", (handlers) =>
  handlers.handleRaw(
    "deliver",
    Effect.fn("http.deliveries.deliver")(function* ({ params }) {
      const delivery = yield* readDelivery
      const webhooks = yield* Webhooks
      const found = yield* webhooks.find(params.webhookId)
      if (!isSignedBy(delivery, found?.keys ?? nobodysKey) || found === undefined) return yield* notSigned
      yield* checkTimestamp(delivery.timestamp)
      yield* Effect.andThen(judgeEncoding, judgeInput)
      const input = yield* inputBody
      yield* keepable(input)
      const [database, deliveries] = [yield* Database, yield* Deliveries]
      const accepted = yield* database
        .inProject(found.projectId, deliveries.accept(params.webhookId as WebhookId, delivery.id, input))
        .pipe(Effect.catchTags({ TriggerRefused: triggerProblem, DeliveryRefused: deliveryProblem }))
      return yield* Effect.orDie(HttpServerResponse.json(accepted, { status: accepted.repeated ? 200 : 202 }))
    })
  )
)

const notSigned = Effect.fail(
  new Unauthorized({
    detail:
      "Sign the delivery with the webhook's secret, as Standard Webhooks says: webhook-id, webhook-timestamp and webhook-signature"
  })
)

/** A key for unknown addresses: checking it takes as long as checking a real one. */
const nobodysKey = ["00".repeat(32)]

const DeliveryHeaders = Schema.Struct({
  "webhook-id": Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,200}$/)),
  "webhook-timestamp": Schema.String.check(Schema.isPattern(/^\d{1,12}$/)),
  "webhook-signature": Schema.String.check(Schema.isBetweenLength(1, 2_000))
})

const readDelivery = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const headers = yield* Effect.catch(
    Schema.decodeUnknownEffect(DeliveryHeaders)(request.headers),
    () => notSigned
  )
  const delivery: SignedDelivery = {
    id: headers["webhook-id"],
    timestamp: headers["webhook-timestamp"],
    signature: headers["webhook-signature"],
    // A body that is too large is not read to its end, so its signature cannot be verified.
    body: new Uint8Array(yield* readBody(httpLimits.bodyMaxBytes))
  }
  return delivery
})

/** An old signature may be a replay. */
const checkTimestamp = Effect.fnUntraced(function* (timestamp: string) {
  const distanceMs = Math.abs((yield* Clock.currentTimeMillis) - Number(timestamp) * 1_000)
  if (distanceMs > dispatchLimits.webhookToleranceMs)
    return yield* new Unauthorized({
      detail: `The webhook-timestamp is ${Math.round(distanceMs / 1_000)} seconds from this server's clock, and ${dispatchLimits.webhookToleranceMs / 1_000} are allowed: sign it anew`
    })
})

const deliveryProblem = ({ detail, reason, retryAfterSeconds }: DeliveryRefused) => {
  switch (reason) {
    case "gone":
      return notSigned
    case "rate":
      return tooMany("rate", detail, retryAfterSeconds)
    case "trigger":
      return Effect.fail(new Conflict({ reason: "state", detail }))
  }
}

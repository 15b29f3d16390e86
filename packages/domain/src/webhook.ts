/**
 * A webhook: an address at which another system triggers an agent, and what proves who it is.
 *
 * The token is shown once. From it follows the signing secret, in the form that
 * libraries for Standard Webhooks take; the server keeps no more than the
 * token's hash (decision 0017).
 */
import { Schema } from "effect"
import { AgentId, RunId, Timestamp, WebhookId } from "./ids.ts"
import { NameText } from "./name-text.ts"

export const webhookBounds = { ratePerMinute: 60, maxRatePerMinute: 6_000, graceMaxSeconds: 604_800 } as const

/** What a caller says of a new webhook. */
export const WebhookInput = Schema.Struct({
  /** What it is for, in the words of whoever made it. */
  name: Schema.optional(Schema.NullOr(NameText("A webhook's name", 200))),
  /** Deliveries that are taken within a minute; 60 unless it says otherwise. */
  ratePerMinute: Schema.optional(
    Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: webhookBounds.maxRatePerMinute })))
  ),
  /** What it delivers comes from an untrusted source: the runs that it begins may only suggest. */
  untrusted: Schema.optional(Schema.NullOr(Schema.Boolean))
}).annotate({ identifier: "WebhookInput" })
export type WebhookInput = typeof WebhookInput.Type

/** How long the token before stays good, so that a sender can be changed without a gap; 0 for one that leaked. */
export const RotationInput = Schema.Struct({
  graceSeconds: Schema.optional(
    Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: webhookBounds.graceMaxSeconds })))
  )
}).annotate({ identifier: "RotationInput" })
export type RotationInput = typeof RotationInput.Type

const fields = {
  id: WebhookId,
  agentId: AgentId,
  name: Schema.String,
  /** Where deliveries go, as seen from whoever asked. */
  url: Schema.String,
  ratePerMinute: Schema.Int,
  untrusted: Schema.Boolean,
  createdBy: Schema.String,
  createdAt: Timestamp,
  lastDeliveryAt: Schema.NullOr(Timestamp),
  /** Until when the token before is good too; null when it is not. */
  previousTokenUntil: Schema.NullOr(Timestamp)
}

/** A webhook as lists show it: nothing of it opens anything. */
export const Webhook = Schema.Struct(fields).annotate({ identifier: "Webhook" })
export type Webhook = typeof Webhook.Type

/** A webhook with what opens it, shown once. */
export const OpenedWebhook = Schema.Struct({
  ...fields,
  token: Schema.String,
  /** `whsec_` and the SHA-256 of the token in base64: what libraries sign with. */
  signingSecret: Schema.String
}).annotate({ identifier: "OpenedWebhook" })
export type OpenedWebhook = typeof OpenedWebhook.Type

/** What a sender learns of its delivery. */
export const Delivery = Schema.Struct({
  runId: RunId,
  /** Whether this id was delivered before, so that nothing new began. */
  repeated: Schema.Boolean
}).annotate({ identifier: "Delivery" })
export type Delivery = typeof Delivery.Type

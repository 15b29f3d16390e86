/**
 * Webhooks: made and revoked by people, and the door at which other systems deliver.
 *
 * The door has no bearer token: a delivery is signed. Whatever is wrong with the
 * address or the signature gives the same answer, so nothing can be probed.
 */
import { AgentId, ProjectId, WebhookId } from "@tropism/domain/ids"
import { Delivery, OpenedWebhook, RotationInput, Webhook, WebhookInput } from "@tropism/domain/webhook"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import {
  BodyTooLarge,
  Conflict,
  Forbidden,
  InvalidInput,
  MalformedRequest,
  NotFound,
  TooManyRequests,
  Unauthorized
} from "./problems.ts"

const agent = { projectId: ProjectId, agentId: AgentId }
const hook = { ...agent, webhookId: WebhookId }

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    /** The answer is the only one that shows the token. */
    HttpApiEndpoint.post("create", "/agents/:agentId/webhooks", {
      params: agent,
      payload: WebhookInput,
      success: OpenedWebhook.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("list", "/agents/:agentId/webhooks", {
      params: agent,
      query: PageQuery,
      success: Page(Webhook),
      error: [NotFound, InvalidInput]
    }),
    /** Gives it another token; the one before ends at once, or after `graceSeconds`. */
    HttpApiEndpoint.post("rotate", "/agents/:agentId/webhooks/:webhookId/rotate", {
      params: hook,
      payload: RotationInput,
      success: OpenedWebhook,
      error: [NotFound, Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.delete("revoke", "/agents/:agentId/webhooks/:webhookId", {
      params: hook,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export class DeliveriesApi extends HttpApiGroup.make("deliveries").add(
  /**
   * Triggers the agent with the body as its input. Signed as Standard Webhooks says: the headers
   * `webhook-id`, `webhook-timestamp` and `webhook-signature`. 202 for a new run, 200 with the
   * same run when the id was delivered before.
   */
  HttpApiEndpoint.post("deliver", "/api/hooks/:webhookId", {
    params: { webhookId: Schema.String },
    payload: [Schema.Json, Schema.String.pipe(HttpApiSchema.asText())],
    success: [Delivery, Delivery.annotate({ identifier: "NewDelivery" }).pipe(HttpApiSchema.status(202))],
    error: [Unauthorized, Conflict, InvalidInput, MalformedRequest, BodyTooLarge, TooManyRequests]
  })
) {}

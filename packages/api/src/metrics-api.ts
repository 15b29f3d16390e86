/**
 * Figures of the whole server in Prometheus' text format.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Forbidden } from "./problems.ts"

export class MetricsApi extends HttpApiGroup.make("metrics")
  .add(
    /** Needs a token that reaches every project: figures are of all of them together. */
    HttpApiEndpoint.get("scrape", "/metrics", {
      success: Schema.String.pipe(
        HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })
      ),
      error: Forbidden
    })
  )
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

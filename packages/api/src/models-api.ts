/**
 * Models: who can be asked on this server, what is missing where nobody can, and what it costs.
 */
import { ProjectId } from "@tropism/domain/ids"
import { ModelProvider } from "@tropism/domain/model-config"
import { ModelPrice } from "@tropism/domain/model-price"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { NotFound } from "./problems.ts"

/** A provider, and what to set before it can be used; null where it can. */
export const ProviderState = Schema.Struct({
  provider: ModelProvider,
  /** The model that is asked where nobody named one; empty where there is none of the kind. */
  defaultModel: Schema.String,
  missing: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ProviderState" })

/** A price in dollars per million tokens, and where the figure was read. */
export const KnownPrice = Schema.Struct({
  provider: ModelProvider,
  name: Schema.String,
  price: ModelPrice,
  source: Schema.String,
  /** When the source was written; null for the operator's own. */
  asOf: Schema.NullOr(Schema.String)
}).annotate({ identifier: "KnownPrice" })

export const ModelsState = Schema.Struct({
  /** What an agent without a model asks. */
  default: Schema.NullOr(
    Schema.Struct({ provider: ModelProvider, name: Schema.String, price: Schema.NullOr(ModelPrice) })
  ),
  /** Why there is no default; null where there is one. */
  defaultMissing: Schema.NullOr(Schema.String),
  providers: Schema.Array(ProviderState),
  prices: Schema.Array(KnownPrice)
}).annotate({ identifier: "ModelsState" })
export type ModelsState = typeof ModelsState.Type

export class ModelsApi extends HttpApiGroup.make("models")
  .add(
    HttpApiEndpoint.get("get", "/models", {
      params: { projectId: ProjectId },
      success: ModelsState,
      error: NotFound
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

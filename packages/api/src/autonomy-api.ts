/**
 * What agents have earned by reviews of their suggestions, and how a person takes it back.
 */
import { Autonomy, Promotion } from "@tropism/domain/autonomy"
import { AgentId, ProjectId, PromotionId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

export const Reversal = Schema.Struct({
  reason: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isMaxLength(2_000))))
}).annotate({ identifier: "Reversal" })

const agent = { projectId: ProjectId, agentId: AgentId }

export class AutonomyApi extends HttpApiGroup.make("autonomy")
  .add(
    HttpApiEndpoint.get("get", "/agents/:agentId/autonomy", {
      params: agent,
      query: {
        version: told(
          Schema.FiniteFromString.check(
            Schema.isInt(),
            Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })
          ),
          "The version of the agent; its present one by itself"
        )
      },
      success: Autonomy,
      error: [NotFound, InvalidInput]
    }),
    /** From now on the agent asks again, and its reviews count anew. */
    HttpApiEndpoint.post("reverse", "/agents/:agentId/promotions/:promotionId/reverse", {
      params: { ...agent, promotionId: PromotionId },
      payload: Reversal,
      success: Promotion,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

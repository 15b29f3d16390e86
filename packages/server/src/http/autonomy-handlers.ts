/**
 * What agents have earned, and taking it back.
 *
 * Flow: **http** → task
 */
import { Api } from "@tropism/api/api"
import { Conflict } from "@tropism/api/problems"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Autonomy } from "../task/autonomy.ts"
import { inProject, reading } from "./access.ts"
import { keepable, orNotFound } from "./refusals.ts"

export const autonomyHandlers = HttpApiBuilder.group(Api, "autonomy", (handlers) =>
  handlers
    .handle(
      "get",
      Effect.fn("http.autonomy.get")(function* ({ params, query }) {
        const autonomy = yield* Autonomy
        const earned = autonomy.of(params.agentId, query.version)
        return yield* orNotFound("agent, or version of it")(reading(params.projectId, earned))
      })
    )
    .handle(
      "reverse",
      Effect.fn("http.autonomy.reverse")(function* ({ params, payload }) {
        yield* keepable(payload)
        const autonomy = yield* Autonomy
        return yield* inProject(params.projectId, "reviewer", ({ userId }) =>
          Effect.filterOrFail(
            orNotFound("promotion")(
              autonomy.reverse(params.agentId, params.promotionId, userId, payload.reason ?? null)
            ),
            (reversed) => reversed !== false,
            () =>
              new Conflict({
                reason: "alreadyDecided",
                detail: "The promotion has ended already: the agent asks for such changes"
              })
          )
        )
      })
    )
)

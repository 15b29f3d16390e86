/**
 * Why an event did or did not wake an agent.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Explanations } from "../dispatch/explanations.ts"
import { Outbox } from "../outbox/outbox.ts"
import { reading } from "./access.ts"
import { pageById } from "./paging.ts"
import { orNotFound } from "./refusals.ts"

const knownEvent = orNotFound("event")

export const explanationsHandlers = HttpApiBuilder.group(Api, "explanations", (handlers) =>
  handlers
    .handle(
      "explain",
      Effect.fn("http.explanations.explain")(function* ({ params, query }) {
        const explanations = yield* Explanations
        const outbox = yield* Outbox
        const explanation = Effect.flatMap(outbox.get(query.eventId), (event) =>
          event === undefined
            ? knownEvent(explanations.ofOccurrence(query.eventId, params.agentId))
            : orNotFound("agent")(explanations.one(event, params.agentId))
        )
        return yield* reading(params.projectId, explanation)
      })
    )
    .handle(
      "list",
      Effect.fn("http.explanations.list")(function* ({ params, query }) {
        const explanations = yield* Explanations
        const outbox = yield* Outbox
        return yield* reading(
          params.projectId,
          Effect.flatMap(outbox.get(params.eventId), (event) =>
            pageById(query, (before, limit) =>
              event === undefined
                ? knownEvent(explanations.listOfOccurrence(params.eventId, before, limit))
                : explanations.list(event, before, limit)
            )
          )
        )
      })
    )
)

/**
 * Says which models can be asked here.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * What the operator has set is told by its names, never by its values: no key
 * and no address leaves the server.
 */
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Models } from "../model/models.ts"
import { reading } from "./access.ts"

export const modelsHandlers = HttpApiBuilder.group(Api, "models", (handlers) =>
  handlers.handle(
    "get",
    Effect.fn("http.models.get")(function* ({ params }) {
      const { prices, providers, resolve } = yield* Models
      yield* reading(params.projectId, Effect.void)
      const found = yield* Effect.result(resolve({ agentName: "", model: null }))
      return found._tag === "Success"
        ? {
            default: {
              provider: found.success.provider,
              name: found.success.name,
              price: found.success.price
            },
            defaultMissing: null,
            providers,
            prices
          }
        : { default: null, defaultMissing: found.failure.message, providers, prices }
    })
  )
)

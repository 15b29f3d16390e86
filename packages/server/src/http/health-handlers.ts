/**
 * Says how a project fares, by the rows and by whether this server does its part.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { verdictOf } from "@tropism/domain/health"
import { judge } from "@tropism/domain/vital-signs"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { readVitalSigns } from "../dispatch/vital-signs.ts"
import { reading } from "./access.ts"
import { Readiness } from "./readiness.ts"

export const healthHandlers = HttpApiBuilder.group(Api, "health", (handlers) =>
  handlers.handle(
    "get",
    Effect.fn("http.health.get")(function* ({ params }) {
      const readiness = yield* Readiness
      const signs = yield* reading(params.projectId, readVitalSigns())
      return verdictOf(judge({ ...signs, serverFault: yield* readiness.fault }))
    })
  )
)

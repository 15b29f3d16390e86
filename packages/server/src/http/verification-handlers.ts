/**
 * Verification of a project, for whoever may read it.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Verifier } from "../run/verifier.ts"
import { reading } from "./access.ts"

export const verificationHandlers = HttpApiBuilder.group(Api, "verification", (handlers) =>
  handlers.handle(
    "verify",
    Effect.fn("http.verification.verify")(function* ({ params }) {
      const verifier = yield* Verifier
      // Asked first and alone: the snapshot is a transaction of its own.
      yield* reading(params.projectId, Effect.void)
      return yield* verifier.verify(params.projectId)
    })
  )
)

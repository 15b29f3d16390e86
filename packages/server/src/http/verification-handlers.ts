/**
 * Verification of a project, for whoever may read it.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Unauthorized, Unavailable } from "@tropism/api/problems"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { runLimits } from "../limits.ts"
import { Verifier } from "../run/verifier.ts"
import { reading } from "./access.ts"
import { currentLoss } from "./permits.ts"

export const verificationHandlers = HttpApiBuilder.group(Api, "verification", (handlers) =>
  handlers.handle(
    "verify",
    Effect.fn("http.verification.verify")(function* ({ params }) {
      const verifier = yield* Verifier
      // Asked first and alone: the snapshot is a transaction of its own.
      yield* reading(params.projectId, Effect.void)
      const lost = yield* currentLoss(params.projectId)
      return yield* Effect.raceFirst(
        Effect.catchTag(verifier.verify(params.projectId), "VerificationTooLong", () => tooLong),
        Effect.andThen(lost, Effect.fail(lostToken))
      )
    })
  )
)

const tooLong = Effect.fail(
  new Unavailable({
    detail: `The verification took longer than the ${runLimits.verifyMaxMs / 60_000} minutes that one may take, waiting for others included: ask again when fewer do`
  })
)

/** What whoever waits is told whose token may not hear any more what was found. */
const lostToken = new Unauthorized({ detail: "Your token is not good any more, or has another role by now" })

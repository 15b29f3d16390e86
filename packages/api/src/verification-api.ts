/**
 * Verification: whether everything recorded still follows from the logs.
 */
import { ProjectId } from "@tropism/domain/ids"
import { Verification } from "@tropism/domain/verification"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { NotFound, Unavailable } from "./problems.ts"

export class VerificationApi extends HttpApiGroup.make("verification")
  .add(
    /** Folds every entity and every context of the project anew, as of one moment, and compares; it changes nothing. One of a project is made at a time. */
    HttpApiEndpoint.get("verify", "/verify", {
      params: { projectId: ProjectId },
      success: Verification,
      error: [NotFound, Unavailable]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

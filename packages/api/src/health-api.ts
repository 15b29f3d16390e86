/**
 * How a project fares: one verdict, its evidence and the next step.
 */
import { ProjectHealth } from "@tropism/domain/health"
import { ProjectId } from "@tropism/domain/ids"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { NotFound } from "./problems.ts"

export class HealthApi extends HttpApiGroup.make("health")
  .add(
    /** The same judgement as `tropism doctor` makes of a project; nobody outside the server is asked. */
    HttpApiEndpoint.get("get", "/health", {
      params: { projectId: ProjectId },
      success: ProjectHealth,
      error: NotFound
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

/**
 * What agents, and people who approve, were denied.
 */
import { Denial } from "@tropism/domain/denial"
import { AgentId, ProjectId, RunId } from "@tropism/domain/ids"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery, told } from "./page.ts"
import { InvalidInput, NotFound } from "./problems.ts"

export class DenialsApi extends HttpApiGroup.make("denials")
  .add(
    HttpApiEndpoint.get("list", "/denials", {
      params: { projectId: ProjectId },
      query: {
        ...PageQuery,
        agentId: told(AgentId, "Of this agent"),
        runId: told(RunId, "In this run, or of what it suggested")
      },
      success: Page(Denial),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

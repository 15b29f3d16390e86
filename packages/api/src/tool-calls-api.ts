/**
 * The tool calls of one person: what they called, and what agents called in their name.
 */
import { ProjectId, UserId } from "@tropism/domain/ids"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery, told } from "./page.ts"
import { Forbidden, InvalidInput, NotFound } from "./problems.ts"
import { ToolCallRecord } from "./runs-api.ts"

export class ToolCallsApi extends HttpApiGroup.make("toolCalls")
  .add(
    HttpApiEndpoint.get("list", "/tool-calls", {
      params: { projectId: ProjectId },
      query: {
        ...PageQuery,
        userId: told(
          UserId,
          "Whose calls; your own where it is left out, and only an admin sees those of others"
        )
      },
      success: Page(ToolCallRecord),
      error: [NotFound, InvalidInput, Forbidden]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

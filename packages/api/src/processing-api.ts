/**
 * What an agent has handled, has not handled, and should handle again.
 */
import { AgentId, EntryId, ProjectId } from "@tropism/domain/ids"
import { EntryStatus, ProcessingEntry } from "@tropism/domain/processing"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

const agent = { projectId: ProjectId, agentId: AgentId }

export class ProcessingApi extends HttpApiGroup.make("processing")
  .add(
    HttpApiEndpoint.get("log", "/agents/:agentId/processing-log", {
      params: agent,
      query: { ...PageQuery, status: Schema.optional(EntryStatus) },
      success: Page(ProcessingEntry),
      error: [NotFound, InvalidInput]
    }),
    /** Tries an abandoned or failed entry again: a new entry with the next attempt, and a new run. */
    HttpApiEndpoint.post("retry", "/agents/:agentId/processing-log/:entryId/retry", {
      params: { ...agent, entryId: EntryId },
      success: ProcessingEntry.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

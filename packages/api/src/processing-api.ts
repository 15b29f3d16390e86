/**
 * What an agent has handled, has not handled, and should handle again.
 */
import { AgentId, EntryId, ProjectId } from "@tropism/domain/ids"
import { batchMaxItems, EntryStatus, ProcessingEntry } from "@tropism/domain/processing"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "./problems.ts"

/** Without `ids` the oldest dead letters, up to the bound. */
export const RedriveInput = Schema.Struct({
  ids: Schema.optional(
    Schema.NullOr(Schema.Array(EntryId).check(Schema.isBetweenLength(1, batchMaxItems), Schema.isUnique()))
  )
}).annotate({ identifier: "RedriveInput" })

export const Redriven = Schema.Struct({
  redriven: Schema.Array(Schema.Struct({ entryId: EntryId, newEntryId: EntryId, attempt: Schema.Int })),
  skipped: Schema.Array(Schema.Struct({ entryId: EntryId, reason: Schema.String }))
}).annotate({ identifier: "Redriven" })

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
      error: [NotFound, Forbidden, Conflict, TooManyRequests]
    }),
    HttpApiEndpoint.get("deadLetters", "/agents/:agentId/dead-letters", {
      params: agent,
      query: PageQuery,
      success: Page(ProcessingEntry),
      error: [NotFound, InvalidInput]
    }),
    /** Tries dead letters again, those named or the oldest; asked twice at once, each is tried once. */
    HttpApiEndpoint.post("redrive", "/agents/:agentId/dead-letters/redrive", {
      params: agent,
      payload: RedriveInput,
      success: Redriven,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

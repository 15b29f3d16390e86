/**
 * Why an event did or did not wake an agent: of one agent, or of all of a project.
 */
import { AgentId, GraphEventId, ProjectId, RunId } from "@tropism/domain/ids"
import { ProcessingEntry } from "@tropism/domain/processing"
import { RunStatus } from "@tropism/domain/run"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { InvalidInput, NotFound } from "./problems.ts"

export const Explanation = Schema.Struct({
  agentId: AgentId,
  agentName: Schema.String,
  /** The version that the agent had when the event was dispatched; null when there was no agent yet. */
  agentVersion: Schema.NullOr(Schema.Int),
  eventId: GraphEventId,
  /** `woke`: a run was made; `refused`: something said no; `skipped`: the agent was busy with the object; `waiting`: it may wake yet. */
  outcome: Schema.Literals(["woke", "refused", "skipped", "waiting"]),
  /** What said no, as one word: `objectType`, `selfTriggered`, `chainRuns`, `disabled`, … */
  rule: Schema.NullOr(Schema.String),
  /** The same as a sentence, with the values that decided it. */
  reason: Schema.String,
  /** The latest attempt in the processing log. */
  entry: Schema.NullOr(ProcessingEntry),
  run: Schema.NullOr(Schema.Struct({ id: RunId, status: RunStatus }))
}).annotate({ identifier: "Explanation" })
export type Explanation = typeof Explanation.Type

export class ExplanationsApi extends HttpApiGroup.make("explanations")
  .add(
    /** Also of an agent that is deleted, and of an event whose object is. */
    HttpApiEndpoint.get("explain", "/agents/:agentId/explain", {
      params: { projectId: ProjectId, agentId: AgentId },
      query: { eventId: GraphEventId.annotate({ description: "The event that is asked about" }) },
      success: Explanation,
      error: [NotFound, InvalidInput]
    }),
    /** Of each agent that was there when the event was committed or is there now, newest agent first. */
    HttpApiEndpoint.get("list", "/events/:eventId/explanations", {
      params: { projectId: ProjectId, eventId: GraphEventId },
      query: PageQuery,
      success: Page(Explanation),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

/**
 * A run looked at closely: its steps, and what each model was shown and answered.
 */
import { ProjectId, RunId } from "@tropism/domain/ids"
import { ModelCall, ModelExchange, OpenRequest, RunStep } from "@tropism/domain/model-call"
import { RunObjects } from "@tropism/domain/run-objects"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { InvalidInput, NotFound } from "./problems.ts"

const run = { projectId: ProjectId, runId: RunId }

const CallNumber = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })
)

export class RunRecordsApi extends HttpApiGroup.make("runRecords")
  .add(
    /** One row for each step, the first step first. */
    HttpApiEndpoint.get("steps", "/runs/:runId/steps", {
      params: run,
      query: PageQuery,
      success: Page(RunStep),
      error: [NotFound, InvalidInput]
    }),
    /** What it read, wrote and suggests, the newest of each first. */
    HttpApiEndpoint.get("objects", "/runs/:runId/objects", {
      params: run,
      success: RunObjects,
      error: NotFound
    }),
    /** Every try of every request, in the order in which the models were asked. */
    HttpApiEndpoint.get("modelCalls", "/runs/:runId/model-calls", {
      params: run,
      query: PageQuery,
      success: Page(ModelCall),
      error: [NotFound, InvalidInput]
    }),
    /** The request that is under way, or was when the run was cancelled or given up; made again from the log at each reading. */
    HttpApiEndpoint.get("openRequest", "/runs/:runId/open-request", {
      params: run,
      success: Schema.Struct({
        /** Null where no model is being asked, or was. */
        request: Schema.NullOr(OpenRequest)
      }).annotate({ identifier: "OpenRequestAnswer" }),
      error: NotFound
    }),
    /** One try with the exact request, and the answer or the error. */
    HttpApiEndpoint.get("modelCall", "/runs/:runId/model-calls/:number", {
      params: { ...run, number: CallNumber },
      success: ModelExchange,
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

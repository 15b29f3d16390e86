/**
 * Comparisons: one question put to several variants of a context, the answers side by side.
 */
import { Comparison, ComparisonId, ComparisonInput } from "@tropism/domain/comparison"
import { ContextName } from "@tropism/domain/context-event"
import { ProjectId } from "@tropism/domain/ids"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "./problems.ts"

const context = { projectId: ProjectId, name: ContextName }

export class ComparisonsApi extends HttpApiGroup.make("comparisons")
  .add(
    /** Forks the context once for each variant and asks them all; answers as soon as that is kept (S004-F08). */
    HttpApiEndpoint.post("compare", "/contexts/:name/comparisons", {
      params: context,
      payload: ComparisonInput,
      success: Comparison.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    HttpApiEndpoint.get("comparison", "/contexts/:name/comparisons/:comparisonId", {
      params: { ...context, comparisonId: ComparisonId },
      success: Comparison,
      error: NotFound
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

/**
 * What was denied, and the record of approvals that are.
 *
 * Flow: **http** → tool → task → graph
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Conflict, Forbidden } from "@tropism/api/problems"
import type { ProjectId, TaskId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Database } from "../database/database.ts"
import { Denials, type Why } from "../tool/denials.ts"
import { reading } from "./access.ts"
import { pageById } from "./paging.ts"

export const denialsHandlers = HttpApiBuilder.group(Api, "denials", (handlers) =>
  handlers.handle(
    "list",
    Effect.fn("http.denials.list")(function* ({ params, query }) {
      const denials = yield* Denials
      const { agentId, runId } = query
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) => denials.list({ agentId, runId }, before, limit))
      )
    })
  )
)

/**
 * Records an approval that is refused because a right is missing, the agent's or the person's.
 *
 * **Details** In a transaction of its own, because the approval's is undone.
 */
export const recordingDenial =
  (projectId: ProjectId, taskId: TaskId, edited: Properties | null) =>
  <A, E, R>(approval: Effect.Effect<A, E, R>) =>
    Effect.tapError(approval, (problem) => {
      const why = whyDenied(problem)
      return why === undefined
        ? Effect.void
        : Effect.gen(function* () {
            const database = yield* Database
            const denials = yield* Denials
            const { userId } = yield* CurrentPrincipal
            yield* database.inProject(projectId, denials.ofApproval(taskId, userId, edited, why))
          })
    })

const whyDenied = (problem: unknown): Why | undefined => {
  if (problem instanceof Forbidden) return { reason: "forbidden", detail: problem.detail ?? "" }
  if (!(problem instanceof Conflict)) return undefined
  const { detail = "", reason } = problem
  return reason === "notPermitted" || reason === "agentDisabled" ? { reason, detail } : undefined
}

/**
 * Which project a request at the root of the door for OpenAI's clients is for.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * The one that the token reaches. A token that reaches others, too, is told the
 * addresses that say which is meant.
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Projects } from "../database/projects.ts"
import { openAiFault } from "./openai-faults.ts"
import { openAiLimits } from "./openai-limits.ts"
import { originOf } from "./origins.ts"

/** The project of a token that reaches one. */
export const onlyProject = Effect.gen(function* () {
  const { projectIds } = yield* CurrentPrincipal
  const [projectId, ...others] = projectIds ?? []
  if (projectId !== undefined && others.length === 0) return projectId
  const projects = yield* Projects
  const found = yield* projects.list(projectIds, undefined, openAiLimits.toldProjects + 1)
  const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
  const addresses = found
    .slice(0, openAiLimits.toldProjects)
    .map(({ id, name }) => `${origin}/api/projects/${id}/v1 (${name})`)
  const told = found.length === 0 ? [`${origin}/api/projects/PROJECT/v1`] : addresses
  const more = found.length > told.length ? `, and others that GET ${origin}/api/projects lists` : ""
  return yield* openAiFault(
    `This token reaches more than one project: set the client's base URL to that of one of them: ${told.join(", ")}${more}`,
    { code: "project_required" }
  )
})

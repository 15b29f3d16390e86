/**
 * The role with which somebody comes to an address, before anything else reads it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A token's own role is a bound only; what counts is the role in the project.
 * Whoever read the one for the other would show a viewer what an admin sees.
 */
import { type Principal, roleIn } from "@tropism/api/authorization"
import { ProjectId } from "@tropism/domain/ids"

const inPath = /^\/api\/projects\/(?<projectId>[0-9a-f-]{36})(?:[/?#]|$)/i

/**
 * A principal as it is at an address: in a project's with the role that it has there.
 *
 * **Details** At the root of OpenAI's door a token of one project is in that project. Elsewhere a role is what the token may at most.
 */
export const principalAt = (principal: Principal, url: string): Principal => {
  const [only, ...others] = principal.projectIds ?? []
  const atRoot = /^\/v1(?:[/?#]|$)/.test(url) && others.length === 0 ? only : undefined
  const projectId = inPath.exec(url)?.groups?.["projectId"]?.toLowerCase() ?? atRoot
  const role = projectId === undefined ? undefined : roleIn(principal, ProjectId.make(projectId))
  return role === undefined ? principal : { ...principal, role }
}

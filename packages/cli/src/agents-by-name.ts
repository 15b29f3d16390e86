/**
 * The agents of a project, found by what a person calls them.
 */
import type { Agent } from "@tropism/domain/agent"
import { Effect } from "effect"
import { type Access, readPages } from "./access.ts"
import { type Failure, failure } from "./failure.ts"
import { printable } from "./terminal/text.ts"

export const readAgents = (access: Access) =>
  Effect.map(
    readPages((query) => access.client.agents.list({ params: access.params, query }), Infinity),
    ({ items }) => items
  )

/** Finds an agent by its name or id. */
export const findAgent = (access: Access, reference: string) =>
  Effect.flatMap(readAgents(access), (agents) => pickAgent(agents, reference))

/** The one of these that a person means. */
export const pickAgent = (agents: ReadonlyArray<Agent>, reference: string): Effect.Effect<Agent, Failure> => {
  const found =
    agents.find((agent) => agent.id === reference) ?? agents.find((agent) => agent.name === reference)
  if (found) return Effect.succeed(found)
  return Effect.fail(
    failure(
      agents.length === 0
        ? `Agent not found: "${printable(reference)}": the project has no agents yet. Add one with "tropism agents apply -f FILE".`
        : `Agent not found: "${printable(reference)}". Available: ${nameList(agents)}.`
    )
  )
}

const shownNames = 20

const nameList = (agents: ReadonlyArray<Agent>): string => {
  const names = agents
    .slice(0, shownNames)
    .map((agent) => agent.name)
    .join(", ")
  return agents.length > shownNames ? `${names} and ${agents.length - shownNames} more` : names
}

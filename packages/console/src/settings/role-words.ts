/**
 * What each role may do, each beside what stands above it.
 */
import type { Role } from "@tropism/api/authorization"

export const roleWords: Readonly<Record<Role, string>> = {
  viewer: "reads everything but the conversations of others",
  editor: "changes the graph, triggers agents and answers their questions",
  reviewer: "decides what agents suggest, and undoes what they did",
  admin: "defines agents, lets people in and out, and stops everything"
}

/** As choices of a field; of those that are given at most `highest`. */
export const roleChoices = (roles: ReadonlyArray<Role>) =>
  roles.map((value) => ({ value, label: `${value}: ${roleWords[value]}` }))

/**
 * What each role may do, each beside what stands above it.
 */
import type { Role } from "@tropism/api/authorization"

export const roleWords: Readonly<Record<Role, string>> = {
  viewer: "reads everything but the conversations of others",
  editor: "changes the graph, decides what agents suggest, triggers them and answers their questions",
  reviewer: "undoes what agents did, and takes back the trust that they earned",
  admin: "defines agents, lets people in and out, and stops everything"
}

/** As choices of a field; of those that are given at most `highest`. */
export const roleChoices = (roles: ReadonlyArray<Role>) =>
  roles.map((value) => ({ value, label: `${value}: ${roleWords[value]}` }))

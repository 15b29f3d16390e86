/**
 * What each role may do, each beside what stands above it.
 */
import type { Role } from "@tropism/api/authorization"

export const roleWords: Readonly<Record<Role, string>> = {
  viewer: "reads everything except other people's conversations",
  editor: "edits the graph, reviews suggestions, triggers agents and answers their questions",
  reviewer: "undoes agents' changes and revokes earned trust",
  admin: "manages agents and members, and can stop everything"
}

/** As choices of a field; of those that are given at most `highest`. */
export const roleChoices = (roles: ReadonlyArray<Role>) =>
  roles.map((value) => ({ value, label: `${value}: ${roleWords[value]}` }))

/**
 * Which queries a change of the graph may have made old.
 *
 * Pure. A key is the project, the kind of what was read, then what of it. What
 * cannot have changed is left alone, so that a busy graph does not make every
 * open page read everything.
 */
import type { GraphEvent } from "@tropism/domain/graph"

/** Read once, or changed by people alone and read again by who changes them. */
const untouched: ReadonlyArray<string> = [
  "history",
  "members",
  "tokens",
  "sessions",
  "models",
  "mcp-servers",
  "agent-versions",
  "conversations",
  "settings",
  "types-in-use"
]

/** Of these the third part of the key may be one object's id. */
const ofOneObject: ReadonlyArray<string> = ["object", "relationship", "provenance"]

/** Whether a query may be old after events; without any event it is not known what happened, and it may. */
export const isTouched = (
  queryKey: ReadonlyArray<unknown>,
  events: ReadonlyArray<Pick<GraphEvent, "entityType" | "entityId">>
): boolean => {
  const [, kind, id] = queryKey
  if (typeof kind !== "string" || untouched.includes(kind)) return false
  if (events.length === 0 || !ofOneObject.includes(kind)) return true
  return events.some(({ entityId }) => entityId === id)
}

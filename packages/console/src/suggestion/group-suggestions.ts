/**
 * Suggestions in the order in which people read them: by agent, then by kind, then the longest waiting first.
 *
 * The order depends on nothing that changes while a suggestion waits, so no
 * card jumps under the cursor when the list is read again.
 */
import type { SuggestionTask, SuggestionType } from "@tropism/domain/task"

export interface SuggestionGroup {
  /** Stable while the group exists: the agent's id and the kind. */
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly type: SuggestionType
  readonly tasks: ReadonlyArray<SuggestionTask>
}

const kinds: ReadonlyArray<SuggestionType> = [
  "object_create_suggestion",
  "object_update_suggestion",
  "object_delete_suggestion",
  "relationship_create_suggestion",
  "relationship_delete_suggestion"
]

export const groupSuggestions = (tasks: ReadonlyArray<SuggestionTask>): ReadonlyArray<SuggestionGroup> => {
  const groups = Map.groupBy(tasks, (task) => `${task.agentId} ${task.type}`)
  return [...groups]
    .flatMap(([id, members]) => {
      const sorted = members.toSorted((a, b) => a.number - b.number)
      const [first] = sorted
      return first
        ? [{ id, agentId: first.agentId, agentName: first.agentName, type: first.type, tasks: sorted }]
        : []
    })
    .toSorted(
      (a, b) =>
        compareText(a.agentName, b.agentName) ||
        kinds.indexOf(a.type) - kinds.indexOf(b.type) ||
        compareText(a.id, b.id)
    )
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

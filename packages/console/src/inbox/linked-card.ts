/**
 * The card that a link leads to: how it is known, and how it is marked.
 */
import { createContext, useContext } from "react"

/** The task that the address names. */
export const LinkedTask = createContext<string | undefined>(undefined)

/** The element of a task's card, for whoever brings it into view. */
export const cardElementId = (taskId: string): string => `task-${taskId}`

/** What a card needs to be led to. */
export const useLinkedCard = (taskId: string) => {
  const isLinked = useContext(LinkedTask) === taskId
  return {
    attributes: { id: cardElementId(taskId), tabIndex: -1, "aria-current": isLinked },
    frame: isLinked ? "scroll-my-24 border-leaf ring-1 ring-leaf" : "scroll-my-24 border-line"
  }
}

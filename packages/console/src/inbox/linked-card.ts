/**
 * The card that a link leads to and the one that a person is at: how they are known, and how they are marked.
 */
import { createContext, useContext } from "react"

/** The task that the address names. */
export const LinkedTask = createContext<string | undefined>(undefined)

/** Where a person is in the inbox. */
export interface Place {
  readonly currentId: string | undefined
  /** The focus came into a card. */
  readonly enter: (taskId: string) => void
  /** What was done about a task was refused: whoever is still at its card goes on there. */
  readonly stay: (taskId: string) => void
}

const nowhere: Place = { currentId: undefined, enter: () => {}, stay: () => {} }

export const InboxPlace = createContext<Place>(nowhere)

/** The element of a task's card, for whoever brings it into view. */
export const cardElementId = (taskId: string): string => `task-${taskId}`

/** Whether any of a task's card is on the screen. */
export const isInView = (taskId: string): boolean => {
  const place = document.getElementById(cardElementId(taskId))?.getBoundingClientRect()
  return place !== undefined && place.bottom > 0 && place.top < window.innerHeight
}

/** What a card needs to be led to. */
export const useLinkedCard = (taskId: string) => {
  const linkedId = useContext(LinkedTask)
  const { currentId, enter } = useContext(InboxPlace)
  const isCurrent = (currentId ?? linkedId) === taskId
  return {
    attributes: {
      id: cardElementId(taskId),
      tabIndex: -1,
      "aria-current": isCurrent,
      onFocus: () => enter(taskId)
    },
    frame: isCurrent ? "scroll-my-24 border-leaf ring-1 ring-leaf" : "scroll-my-24 border-line"
  }
}

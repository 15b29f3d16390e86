/**
 * Checks that a subscriber was told of what he asked for: of each event, in their order, and of nothing else.
 */
import { type Checker, unless } from "./remains.ts"
import { subscribedEvent } from "./subscriber.ts"

/** What came again is known by its id; what came first came in the order of the feed. */
const eventsPosted: Checker = ({ acknowledged, events, subscriptions }) => {
  if (subscriptions.length === 0) return []
  const due = events
    .filter(
      ({ entityType, type }) => entityType === subscribedEvent.entityType && type === subscribedEvent.type
    )
    .toSorted((one, other) => (one.place ?? 0) - (other.place ?? 0))
    .map(({ id }) => id)
  const told = [...new Set(acknowledged.posted)]
  return unless(
    told.length === due.length && due.every((id, index) => told[index] === id),
    `a subscriber was told of ${told.join(", ")} and should have been of ${due.join(", ")}`
  )
}

export const checkDeliveries = { eventsPosted }

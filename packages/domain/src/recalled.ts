/**
 * What an agent was reminded of from its other contexts (S004-F04).
 *
 * It is told once: what a context was reminded of lately is not found again for
 * it. Only the newest are remembered, so the state does not grow with the log.
 */
import type { ContextEventId, MemoryRecalledEvent } from "./context-event.ts"

export const recallBounds = {
  /** Passages that a context was reminded of and that are not told again. */
  remembered: 100
} as const

/** The list with what an event recalls at its end. */
export const withRecalled = (
  recalled: ReadonlyArray<ContextEventId>,
  { passages }: Pick<MemoryRecalledEvent, "passages">
): ReadonlyArray<ContextEventId> =>
  [...recalled, ...passages.map(({ eventId }) => eventId)].slice(-recallBounds.remembered)

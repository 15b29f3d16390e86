/**
 * Which pieces of answers a context's log is told with, in which order; pure.
 *
 * Flow: graph → outbox → dispatch → run → **agent**
 *
 * Pieces come from several servers, and a server that stood still goes on with
 * an attempt that is over until it finds that out. So pieces of what the log has
 * left behind are passed over, and so is what was told already. One that is
 * missing keeps none behind it.
 */
import { eventNumber, type LoggedEvent, type TextDeltaEvent } from "@tropism/domain/context-event"
import type { LoggedJson } from "@tropism/domain/logged-event"
import { type PiecePlace, pieceOf } from "@tropism/domain/piece"

/** Behind these a model is asked anew, if at all. */
const leavesBehind: ReadonlySet<string> = new Set<LoggedEvent["type"]>([
  "AgentTurnStartedEvent",
  "AssistantMessageEvent",
  "SoftStopEvent",
  "AgentTurnInterruptedEvent",
  "AgentTurnCompletedEvent",
  "AgentTurnFailedEvent"
])

export interface PieceOrder {
  /** Notes events of the log, as they are read. */
  readonly note: (events: ReadonlyArray<LoggedJson>) => void
  /** Whether a piece is told, which it is once. */
  readonly take: (piece: Pick<TextDeltaEvent, "id" | "timestamp">) => boolean
}

export const makePieceOrder = (): PieceOrder => {
  let since = 0
  let last: PiecePlace & { readonly begunAt: string | undefined } = {
    after: 0,
    place: 0,
    begunAt: undefined
  }
  return {
    note: (events) => {
      for (const { id, type } of events) if (leavesBehind.has(type)) since = Math.max(since, eventNumber(id))
    },
    take: (piece) => {
      const { after, place } = pieceOf(piece)
      const isSame = after === last.after
      // Who was stopped and let go on asks anew behind the same event.
      const isAnew = place === 1 && piece.timestamp !== last.begunAt
      if (after < since || after < last.after || (isSame && place <= last.place && !isAnew)) return false
      const begunAt = place === 1 ? piece.timestamp : isSame ? last.begunAt : undefined
      last = { after, place, begunAt }
      return true
    }
  }
}

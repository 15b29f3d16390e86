/**
 * Where a piece of an answer stands, which passes by while the answer is made; pure.
 */
import type { TextDeltaEvent } from "./context-event.ts"

/** It is the `place`-th piece of what was asked for behind the event `after`, from 1. */
export interface PiecePlace {
  readonly after: number
  readonly place: number
}

/** The id of a piece is `{name}:{after}.d{place}`. */
export const pieceOf = ({ id }: Pick<TextDeltaEvent, "id">): PiecePlace => {
  const [after = 0, place = 1] = (/:(\d+)\.d(\d+)$/.exec(id) ?? []).slice(1).map(Number)
  return { after, place }
}

/**
 * What was heard of an answer that a model is giving, from the pieces in which it comes; pure.
 *
 * Pieces pass by and are kept by nobody, so who comes late, hides the page or is
 * cut off misses some. Their numbers tell where: a hole is shown, never closed.
 */
import { pieceOf } from "@tropism/domain/piece"
import type { StreamEvent } from "../server/event-stream.ts"

export interface HeardAnswer {
  /** What was heard without a hole, each between two holes. */
  readonly parts: ReadonlyArray<string>
  /** The number of the piece that was heard last. */
  readonly piece: number
  readonly isFromBeginning: boolean
  /** The last event that the model was shown. */
  readonly afterEvent: number
}

/** A piece is added; what ends an answer stands in the steps, and is no longer said now. */
export const hear = (
  before: HeardAnswer | undefined,
  { name, text }: Pick<StreamEvent, "name" | "text">
): HeardAnswer | undefined => {
  if (name !== "TextDeltaEvent") return name === "AssistantMessageEvent" ? undefined : before
  const { delta, ...told }: { readonly id: string; readonly delta: string } = JSON.parse(text)
  const { after: afterEvent, place: piece } = pieceOf(told)
  // Who takes a run over asks anew, and what is said then is counted anew.
  return before === undefined || before.afterEvent !== afterEvent || piece <= before.piece
    ? { parts: [delta], piece, isFromBeginning: piece === 1, afterEvent }
    : { ...before, parts: withPiece(before.parts, delta, piece === before.piece + 1), piece }
}

const withPiece = (parts: ReadonlyArray<string>, delta: string, isNext: boolean): ReadonlyArray<string> =>
  isNext ? [...parts.slice(0, -1), `${parts.at(-1) ?? ""}${delta}`] : [...parts, delta]

/** As it is shown: dots stand for what was not heard. */
export const shownWords = ({ parts, isFromBeginning }: HeardAnswer): string =>
  `${isFromBeginning ? "" : "… "}${parts.join(" … ")}`

/** All of it that is known, for a guess at how long it is; `kept` is its beginning as far as the server keeps it. */
export const knownWords = ({ parts, isFromBeginning }: HeardAnswer, kept: string): string => {
  const words = parts.join("")
  return (isFromBeginning && parts.length === 1) || words.length >= kept.length ? words : kept
}

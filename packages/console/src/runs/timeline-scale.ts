/**
 * Where a span of a run is drawn: to one scale, but for long waits, which are drawn short.
 *
 * Pure. A wait of hours beside work of seconds would leave the work no room; so
 * it takes a fixed part of the whole, and whoever draws it marks it as a break.
 */
import { limits } from "../limits.ts"
import type { Span } from "./timeline.ts"

/** A time in which a run did nothing but wait. */
export type Break = Pick<Span, "startMs" | "endMs">

/** What part of the whole each break takes, and all of them at most. */
const breakShare = 0.1
const breaksShare = 0.5

/** The waits that are longer than all the work, and long enough to be worth a mark; none where there is no work to be seen. */
export const breaksOf = (spans: ReadonlyArray<Span>, wholeMs: number): ReadonlyArray<Break> => {
  const work = spans.filter(({ type }) => type !== "wait").toSorted((a, b) => a.startMs - b.startMs)
  if (work.length === 0) return []
  const idle: Array<Break> = []
  let from = 0
  for (const { startMs, endMs } of work) {
    if (startMs > from) idle.push({ startMs: from, endMs: startMs })
    from = Math.max(from, endMs)
  }
  if (wholeMs > from) idle.push({ startMs: from, endMs: wholeMs })
  const workMs = wholeMs - lengthOf(idle)
  const shortestMs = Math.max(limits.shortestBreakMs, workMs)
  return idle.filter(({ startMs, endMs }) => endMs - startMs >= shortestMs)
}

/** Where a span lies in the whole, from 0 to 1. */
export const placeIn = (
  { startMs, endMs }: Pick<Span, "startMs" | "endMs">,
  wholeMs: number,
  breaks: ReadonlyArray<Break>
): { readonly start: number; readonly width: number } => {
  const scaledMs = Math.max(1, wholeMs - lengthOf(breaks))
  const share = Math.min(breakShare, breaksShare / Math.max(1, breaks.length))
  const scaledShare = 1 - breaks.length * share
  const at = (ms: number): number => {
    const passed = breaks.map((each) => ({ ms: passedOf(each, ms), of: each.endMs - each.startMs }))
    const brokenMs = passed.reduce((sum, each) => sum + each.ms, 0)
    const broken = passed.reduce((sum, each) => sum + (each.ms / each.of) * share, 0)
    return Math.min(1, Math.max(0, broken + ((ms - brokenMs) / scaledMs) * scaledShare))
  }
  const start = at(startMs)
  return { start, width: Math.max(0, at(endMs) - start) }
}

/** How much of a break lies before an instant. */
const passedOf = ({ startMs, endMs }: Break, ms: number): number =>
  Math.min(endMs - startMs, Math.max(0, ms - startMs))

/** How long they are together. */
export const lengthOf = (breaks: ReadonlyArray<Break>): number =>
  breaks.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0)

/**
 * A trial: a load that goes on for long, what came of it, and what must hold of that.
 *
 * A trial says what it saw in sentences with a verdict each; `main.ts` prints and
 * records them alike.
 */
import type { Rows } from "../bench/database.ts"
import type { Send } from "../bench/doors.ts"
import { shown } from "../bench/figures.ts"
import type { ServerProcess } from "../bench/server-process.ts"
import { coursesOf, type Look } from "./watch.ts"

/**
 * Something that was looked at; without a bound it is told for its own sake.
 *
 * **Details** A bound of time, pace or growth means something in a whole trial only.
 */
export interface Finding {
  readonly what: string
  readonly seen: string
  readonly bound?: { readonly text: string; readonly holds: boolean; readonly isOfTime: boolean } | undefined
}

export interface Trial {
  readonly server: ServerProcess
  readonly rows: Rows
  readonly send: Send
  readonly size: Size
}

/** How long and how much: a whole trial, or one that only shows that it works. */
export interface Size {
  readonly lookEveryMs: number
  readonly events: number
  /** Events that were written and not yet reacted to, at most. */
  readonly ahead: number
  readonly subscribers: number
  readonly subscribedMs: number
  readonly toldPerSecond: number
  readonly writtenMs: number
  readonly writtenPerSecond: number
}

/** Must be so many, neither fewer nor more. */
export const exactly = (what: string, seen: number, wanted: number): Finding => ({
  what,
  seen: count(seen),
  bound: { text: `exactly ${count(wanted)}`, holds: seen === wanted, isOfTime: false }
})

export const atMost = (what: string, seen: number, bound: number, unit: string): Finding => ({
  what,
  seen: `${shown(seen)} ${unit}`.trim(),
  bound: { text: `≤ ${shown(bound)} ${unit}`.trim(), holds: seen <= bound, isOfTime: true }
})

export const told = (what: string, seen: number, unit: string): Finding => ({
  what,
  seen: `${shown(seen)} ${unit}`.trim()
})

/** What the server took, and what its heap holds at rest before and behind the load. */
export const flatness = (
  looks: ReadonlyArray<Look>,
  heap: { readonly before: number; readonly after: number }
): ReadonlyArray<Finding> => [
  ...coursesOf(looks).map(({ isFlat, last, most, second, unit, what }) => ({
    what,
    seen: `${count(second)} → ${count(last)} ${unit}`.trim() + `, at most ${count(most)}`,
    bound: { text: "flat", holds: isFlat, isOfTime: true }
  })),
  atMost("heap at rest, behind the load and before it", heap.after / heap.before, heapMostTimes, "×")
]

/** What is compiled while the load runs, and caches that are bounded, are not there before it. */
const heapMostTimes = 1.3

export const count = (value: number): string => value.toLocaleString("en")

/**
 * A foreign server of a simulation: it tells what happened, and misbehaves while things go wrong.
 *
 * It repeats what it told, goes behind its cursor, says that there is more when
 * there is not, answers what is none, late or not at all. What it never does is to
 * give a cursor behind what it told: that would be lost with any client. Its cursor
 * says where the listener began, so that the checkers know what had to be heard.
 */
import { Clock, Effect } from "effect"
import type { Chance } from "./chance.ts"
import { unmade, type ExternalFault } from "../src/tools/external-mcp/faults.ts"

export interface Radio {
  /** Answers a question of a server. */
  readonly answer: (params: Record<string, unknown>) => Effect.Effect<unknown, ExternalFault>
  /** Lets something happen. */
  readonly happen: Effect.Effect<void>
  /** From now on it behaves. */
  readonly calmDown: () => void
  /** The end of every cursor of whoever has heard all. */
  readonly end: () => string
}

/** The name under which agents know it, and its one event. */
export const radioName = "radio"
export const radioEvent = "song.played"

/** Where a cursor says that its listener began, and up to where it was told. */
export const placesOf = (cursor: string): readonly [from: number, to: number] => {
  const [from = 0, to = 0] = cursor.split(".").map(Number)
  return [from, to]
}

/** The id of what happened at a place. */
export const songAt = (place: number): string => `song-${place}`

const most = 3

export const makeRadio = (chance: Chance): Radio => {
  const times: Array<string> = []
  let isWild = true
  const songs = (from: number, to: number) =>
    times.slice(from, to).map((timestamp, index) => ({
      eventId: songAt(from + index),
      name: radioEvent,
      timestamp,
      data: { place: from + index, mood: "plain" }
    }))
  const told = (began: number, at: number) => {
    const to = Math.min(times.length, at + most)
    const isOff = isWild && chance.oneIn(3)
    // Of what was told before, some again; and a cursor behind it.
    const from = isOff ? Math.max(began, at - chance.below(3)) : at
    const next = isOff ? Math.max(began, to - chance.below(3)) : to
    return {
      events: songs(from, to),
      cursor: `${began}.${next}`,
      hasMore: isOff ? chance.oneIn(2) : to < times.length,
      nextPollMs: isOff ? chance.between(-5, 10_000) : 1_000
    }
  }
  const answer = Effect.fnUntraced(function* (params: Record<string, unknown>) {
    if (isWild && chance.oneIn(4)) yield* Effect.sleep(chance.between(1, 3_000))
    if (isWild && chance.oneIn(8)) return yield* unmade("The radio is silent")
    if (isWild && chance.oneIn(8)) return { events: "none" }
    const cursor = params["cursor"]
    // Whoever begins is told something of before, which does not count.
    if (typeof cursor !== "string")
      return { events: songs(0, 2), cursor: `${times.length}.${times.length}`, nextPollMs: 500 }
    const [began, at] = placesOf(cursor)
    return told(began, at)
  })
  return {
    answer,
    happen: Effect.map(Clock.currentTimeMillis, (now) => void times.push(new Date(now).toISOString())),
    calmDown: () => {
      isWild = false
    },
    end: () => `.${times.length}`
  }
}

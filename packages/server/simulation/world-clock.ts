/**
 * The clock of a simulation: time stands still until it is moved to the next alarm.
 *
 * It begins at the same instant in every run, so what is named or sorted by time
 * follows from the seed. Servers, people and PostgreSQL all live in it: see
 * `database-clock.ts`.
 */
import { Clock, Duration, Effect } from "effect"
import type { Program } from "./program.ts"

/** Somebody who waits for an instant. */
export interface Alarm {
  readonly kind: "alarm"
  readonly program: Program
  readonly atMs: number
  readonly wake: () => void
}

export interface WorldClock {
  readonly nowMs: () => number
  /** The clock as a program's fibers see it. */
  readonly of: (program: Program) => Clock.Clock
  /** Alarms whose instant has come, the oldest first. */
  readonly ringing: () => ReadonlyArray<Alarm>
  readonly ring: (alarm: Alarm) => void
  /** Moves on to the next alarm of those who are asked for; false when there is none. */
  readonly advance: (isMeant: (alarm: Alarm) => boolean) => boolean
  /** Lets time pass in which nobody could do anything. */
  readonly leap: (ms: number) => void
  readonly alarms: () => ReadonlyArray<Alarm>
  readonly forget: (program: Program) => void
}

const beginningMs = Date.UTC(2100, 0, 1)

/** Makes a clock; `stir` is told of every change. */
export const makeWorldClock = (stir: () => void): WorldClock => {
  let now = beginningMs
  let alarms: Array<Alarm> = []
  const remove = (alarm: Alarm): void => {
    stir()
    alarms = alarms.filter((one) => one !== alarm)
  }
  const sleep = (program: Program, ms: number): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      const alarm: Alarm = { kind: "alarm", program, atMs: now + ms, wake: () => resume(Effect.void) }
      stir()
      if (!program.isAlive) return undefined
      const after = alarms.findIndex((one) => one.atMs > alarm.atMs)
      alarms.splice(after === -1 ? alarms.length : after, 0, alarm)
      return Effect.sync(() => remove(alarm))
    })
  return {
    nowMs: () => now,
    of: (program) => ({
      currentTimeMillisUnsafe: () => now,
      currentTimeMillis: Effect.sync(() => now),
      currentTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
      monotonicTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
      sleep: (duration) => sleep(program, Math.max(1, Math.ceil(Duration.toMillis(duration))))
    }),
    ringing: () => alarms.filter((alarm) => alarm.atMs <= now),
    ring: (alarm) => {
      remove(alarm)
      alarm.wake()
    },
    advance: (isMeant) => {
      const next = alarms.find(isMeant)
      if (next === undefined) return false
      now = Math.max(now, next.atMs)
      return true
    },
    leap: (ms) => {
      stir()
      now += ms
    },
    alarms: () => alarms,
    forget: (program) => {
      stir()
      alarms = alarms.filter((alarm) => alarm.program !== program)
    }
  }
}

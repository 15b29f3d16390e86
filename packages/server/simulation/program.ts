/**
 * Something that lives in a simulation: a server, or the people and the time around the servers.
 *
 * A program is alive until it is ended, and then for ever dead: its fibers are
 * never resumed, its timers never ring and its statements never reach the
 * database. Being asleep is less: it may go on later and not know that it slept.
 */
import type { Line } from "./line.ts"

export interface Program {
  readonly name: string
  isAlive: boolean
  /** The conductor gives it no turn before this one: a machine that froze. */
  sleepsUntilTurn: number
  /** The connections that it has opened. */
  readonly lines: Set<Line>
  /** Who wants to know that it has died. */
  readonly mourners: Set<() => void>
  readonly tellEnd: () => void
}

export const makeProgram = (name: string): Program => {
  const mourners = new Set<() => void>()
  return {
    name,
    isAlive: true,
    sleepsUntilTurn: 0,
    lines: new Set(),
    mourners,
    tellEnd: () => {
      const told = [...mourners]
      mourners.clear()
      for (const tell of told) tell()
    }
  }
}

/**
 * Follows what is open until all of it is final, and says what stands still for too long.
 *
 * Something has its own pace as long as it has a bound: the time in which it
 * stands as it did may not be longer. What waits for others is measured from the
 * moment since which nobody has a pace of his own and nothing has moved. So
 * whatever hangs is found, the last of all when everything else is final.
 */
import { lineMs, type OpenWork } from "./open-work.ts"

export interface Standstill {
  /** Takes note of what is open at an instant; answers what has stood still for too long, in words. */
  readonly look: (open: ReadonlyArray<OpenWork>, nowMs: number) => ReadonlyArray<string>
}

interface Seen {
  readonly standing: string
  readonly sinceMs: number
}

export const makeStandstill = (beginMs: number): Standstill => {
  let seen = new Map<string, Seen>()
  /** Since when all that is open waits for others and nothing moves. */
  let stillMs = beginMs
  return {
    look: (open, nowMs) => {
      const now = new Map(
        open.map(({ name, standing }): [string, Seen] => {
          const before = seen.get(name)
          return [name, before?.standing === standing ? before : { standing, sinceMs: nowMs }]
        })
      )
      const isSame = now.size === seen.size && [...now].every(([name, one]) => seen.get(name) === one)
      if (!isSame || open.some(({ withinMs }) => withinMs !== null)) stillMs = nowMs
      seen = now
      return open.flatMap(({ name, withinMs }) => {
        const stoodMs = nowMs - (withinMs === null ? stillMs : (now.get(name)?.sinceMs ?? nowMs))
        const mostMs = withinMs ?? lineMs
        return stoodMs > mostMs
          ? [`${name}: it has stood so for ${seconds(stoodMs)}, and ${seconds(mostMs)} are the most`]
          : []
      })
    }
  }
}

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`

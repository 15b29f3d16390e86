/**
 * The address of a subscriber in a simulation: it notes each event that it is posted.
 *
 * While things go wrong it is slow, cannot be reached, or takes what comes and
 * does not say so. It fails a few times in a row at most, so the next try is
 * never far away.
 */
import { Effect } from "effect"
import { CallbackFailed, type Callback } from "../src/mcp/event-callbacks.ts"
import type { Chance } from "./chance.ts"

export interface Inbox {
  /** Takes what is posted under an id, or fails. */
  readonly take: (callback: Callback, id: string) => Effect.Effect<void, CallbackFailed>
  /** What was posted, each as often as it came. */
  readonly taken: ReadonlyArray<string>
  /** From now on it behaves. */
  readonly calmDown: () => void
}

/** After so many the next try waits for eight seconds. */
const mostFailuresInRow = 3

export const makeInbox = (chance: Chance): Inbox => {
  const taken: Array<string> = []
  let isWild = true
  let failures = 0
  const fails = (): boolean => {
    const isFailing = isWild && failures < mostFailuresInRow && chance.oneIn(6)
    failures = isFailing ? failures + 1 : failures
    return isFailing
  }
  const take: Inbox["take"] = Effect.fnUntraced(function* (_callback, id) {
    if (isWild && chance.oneIn(4)) yield* Effect.sleep(chance.between(1, 2_000))
    if (fails()) return yield* new CallbackFailed({ fault: "connection_refused", status: null })
    taken.push(id)
    if (fails()) return yield* new CallbackFailed({ fault: "timeout", status: null })
    failures = 0
  })
  return {
    take,
    taken,
    calmDown: () => {
      isWild = false
    }
  }
}

/**
 * Whether an agent goes round in circles: the same call, a short cycle, the same error.
 *
 * Folded from the log, call by call, so a worker that takes a run over counts on
 * where the last one stopped. Two calls are the same when their names and the
 * canonical text of their arguments are (S002-R33). A turn that somebody asked
 * for begins anew: what a person wants again is not a loop.
 */
import type { Schema } from "effect"
import { canonicalJson } from "./json.ts"
import type { ToolCall } from "./message.ts"

/** A call that was made, and how it failed if it did. */
interface MadeCall {
  readonly id: string
  readonly name: string
  readonly key: string
  readonly error: string | null
}

export interface Repetition {
  readonly lastKey: string
  /** How often the last call was made in a row. */
  readonly count: number
  /** The newest calls, oldest first; a warning forgets them. */
  readonly recent: ReadonlyArray<MadeCall>
}

export const noRepetition: Repetition = { lastKey: "", count: 0, recent: [] }

export const repetitionBounds = {
  /** The call that is answered with a warning instead of being made. */
  warnAt: 3,
  /** The call at which the run is ended. */
  failAt: 5,
  /** Different calls of one cycle, at most. */
  cycleMaxCalls: 4,
  /** The same errors in a row that are pointed out. */
  errorStreak: 3
} as const

const keyOf = ({ name, arguments: args }: ToolCall): string => `${name} ${canonicalJson(args)}`

/** How often a call would have been made in a row, this time included. */
export const timesInARow = ({ count, lastKey }: Repetition, call: ToolCall): number =>
  keyOf(call) === lastKey ? count + 1 : 1

/** A call was made, or was refused; one that still has no outcome is not forgotten, however many were made after it. */
export const withCall = (
  before: Repetition,
  call: ToolCall,
  isPending: (callId: string) => boolean = () => false
): Repetition => {
  const key = keyOf(call)
  const calls = [...before.recent, { id: call.id, name: call.name, key, error: null }]
  const oldest = calls.length - 2 * repetitionBounds.cycleMaxCalls
  return {
    lastKey: key,
    count: timesInARow(before, call),
    recent: calls.filter(({ id }, index) => index >= oldest || isPending(id))
  }
}

/** A call that was made has failed. */
export const withError = (before: Repetition, callId: string, error: Schema.Json): Repetition => ({
  ...before,
  recent: before.recent.map((call) => (call.id === callId ? { ...call, error: canonicalJson(error) } : call))
})

/** The model has been told: the same calls must come again before it is told once more. */
export const warned = (before: Repetition): Repetition => ({ ...before, recent: [] })

export type LoopWarning = "cycle" | "errorStreak"

/** What to point out to the model before it is asked again; calls of tools that may be repeated count for nothing. */
export const findLoopWarning = (
  repetition: Repetition,
  mayRepeat: (tool: string) => boolean
): LoopWarning | undefined => {
  const recent = repetition.recent.filter(({ name }) => !mayRepeat(name))
  const last = recent.slice(-repetitionBounds.errorStreak)
  const [first] = last
  if (
    first !== undefined &&
    first.error !== null &&
    last.length === repetitionBounds.errorStreak &&
    last.every(({ error }) => error === first.error)
  )
    return "errorStreak"
  const keys = recent.map(({ key }) => key)
  for (let length = 2; length <= repetitionBounds.cycleMaxCalls; length++) {
    const cycle = keys.slice(-length)
    const before = keys.slice(-2 * length, -length)
    if (
      before.length === length &&
      new Set(cycle).size > 1 &&
      cycle.every((key, index) => key === before[index])
    )
      return "cycle"
  }
  return undefined
}

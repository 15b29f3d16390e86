/**
 * How far an import or an export has come, for whoever is watching.
 *
 * On a terminal a bar with the rate and the time that is left, redrawn at most
 * every so often; elsewhere a line on standard error for each quarter, or nothing where JSON is
 * wanted, and never anything with `--quiet`. Where the whole is not known there is no bar, only what is done.
 */
import { Clock, Effect } from "effect"
import { limits } from "./limits.ts"
import { makeNotice } from "./notice.ts"
import { JsonFlag, QuietFlag } from "./settings.ts"
import { drawBar, milestone } from "./terminal/progress-bar.ts"
import { Screen } from "./terminal/screen.ts"
import { formatBytes } from "./terminal/text.ts"
import { formatDuration } from "./terminal/time.ts"

export interface TransferState {
  readonly done: number
  readonly total: number | undefined
  readonly unit: "bytes" | "steps"
  /** Lines so far, where there are lines. */
  readonly lines?: number | undefined
}

/** Makes what shows the states of one transfer. */
export const transferProgress = (label: string) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const isJson = yield* JsonFlag
    const isQuiet = yield* QuietFlag
    const say = yield* makeNotice
    let drawnAt = 0
    let shown = 0
    let first: { readonly at: number; readonly state: TransferState } | undefined
    return (state: TransferState) =>
      Effect.gen(function* () {
        if (isQuiet) return
        const { done, total } = state
        const progress = { label, done, total: total ?? 0 }
        if (!screen.isLive) {
          if (isJson || total === undefined) return
          const quarter = milestone(shown, progress)
          shown = done
          if (quarter !== undefined) yield* say(`${label}: ${countText(state)}`)
          return
        }
        const now = yield* Clock.currentTimeMillis
        first ??= { at: now, state }
        if (done < (total ?? Infinity) && now - drawnAt < limits.redrawMs) return
        drawnAt = now
        const note = noteOf(first.state, state, now - first.at)
        yield* screen.redraw((columns) =>
          total === undefined
            ? `${label}  ${countText(state)}${note === undefined ? "" : `  ${note}`}`
            : drawBar(
                { ...progress, count: state.unit === "bytes" ? countText(state) : undefined, note },
                columns,
                screen.paint
              )
        )
      })
  })

const countText = ({ done, total, unit }: TransferState): string => {
  const text = unit === "bytes" ? formatBytes : String
  return total === undefined ? text(done) : `${text(done)} of ${text(total)}`
}

/** How fast it goes, and how long what is left will take at that rate. */
const noteOf = (first: TransferState, now: TransferState, tookMs: number): string | undefined => {
  if (tookMs < 500) return undefined
  const perMs = (now.done - first.done) / tookMs
  const lines = now.lines === undefined ? undefined : (now.lines - (first.lines ?? 0)) / (tookMs / 1_000)
  const left = now.total === undefined || perMs <= 0 ? undefined : (now.total - now.done) / perMs
  const parts = [
    ...(lines === undefined ? [] : [`${Math.round(lines)} lines/s`]),
    ...(left === undefined ? [] : [`${formatDuration(left)} left`])
  ]
  return parts.length === 0 ? undefined : parts.join(", ")
}

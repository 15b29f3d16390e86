/**
 * Spans of time as people say them: how long something took, how long ago it was.
 *
 * Pure: the present comes from the caller, who has it from Effect's Clock.
 */

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** How long something took: `820 ms`, `1.2 s`, `2 min 5 s`, `1 h 20 min`. */
export const durationText = (durationMs: number): string => {
  const ms = Math.max(0, durationMs)
  if (ms < secondMs) return `${Math.round(ms)} ms`
  if (ms < 10 * secondMs) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return parts(ms, minuteMs, "min", secondMs, "s")
  if (ms < dayMs) return parts(ms, hourMs, "h", minuteMs, "min")
  return parts(ms, dayMs, "d", hourMs, "h")
}

/** How long ago something was: `now`, `40 s`, `5 min`, `3 h`, `2 d`. */
export const ageText = (instant: string, nowMs: number): string => {
  const thenMs = Date.parse(instant)
  if (Number.isNaN(thenMs)) return "?"
  const ms = nowMs - thenMs
  if (ms < 10 * secondMs) return "now"
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`
  return `${Math.floor(ms / dayMs)} d`
}

const parts = (ms: number, big: number, bigUnit: string, small: number, smallUnit: string): string => {
  const rest = Math.floor((ms % big) / small)
  return `${Math.floor(ms / big)} ${bigUnit}${rest === 0 ? "" : ` ${rest} ${smallUnit}`}`
}

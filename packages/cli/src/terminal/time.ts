/**
 * Times as a person reads them at a glance.
 */

/** A duration: `45 ms`, `3.2 s`, `4 min 5 s`, `2 h 10 min`. */
export const formatDuration = (durationMs: number): string => {
  const ms = Math.max(0, Math.round(durationMs))
  if (ms < 950) return `${ms} ms`
  const seconds = Math.round(ms / 1000)
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? join(`${minutes} min`, seconds % 60, "s")
    : join(`${Math.floor(minutes / 60)} h`, minutes % 60, "min")
}

const join = (first: string, rest: number, unit: string): string =>
  rest === 0 ? first : `${first} ${rest} ${unit}`

/** How long ago an instant was: `now`, `5 min`, `3 h`, `12 d`. */
export const formatAge = (timestamp: string, nowMs: number): string => {
  const seconds = Math.round((nowMs - Date.parse(timestamp)) / 1000)
  if (!Number.isFinite(seconds)) return timestamp
  if (seconds < 5) return "now"
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** How long it is until an instant: `4 min`, `3 h`, `12 d`; `now` when it is over. */
export const formatWait = (timestamp: string, nowMs: number): string =>
  formatAge(new Date(nowMs).toISOString(), Date.parse(timestamp))

/** The time of day of an instant, in UTC as the server tells it. */
export const clockTime = (timestamp: string): string => timestamp.slice(11, 19)

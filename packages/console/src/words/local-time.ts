/**
 * Instants as clocks show them: the reader's own, as the fields of a browser take them, and one in another zone.
 */

const digits = (value: number, length = 2): string => String(value).padStart(length, "0")

/** An instant for a `datetime-local` field, to the minute; nothing where it is none. */
export const localTimeOf = (instant: string | undefined): string => {
  const date = new Date(instant ?? "")
  if (Number.isNaN(date.getTime())) return ""
  const day = [digits(date.getFullYear(), 4), digits(date.getMonth() + 1), digits(date.getDate())].join("-")
  return `${day}T${digits(date.getHours())}:${digits(date.getMinutes())}`
}

/** What a clock in another zone shows, of `2026-11-24T09:30:00.000+01:00`: `Tue 24 Nov, 09:30`; the year where it is not this one. */
export const wallClockText = (
  localTime: string,
  nowMs: number,
  to: "minutes" | "seconds" = "minutes"
): string => {
  const shown = new Date(`${localTime.slice(0, 19)}Z`)
  if (Number.isNaN(shown.getTime())) return localTime
  return `${dayText(localTime, nowMs)}, ${localTime.slice(11, to === "seconds" ? 19 : 16)}`
}

/** The same of an instant, by the reader's own clock. */
export const clockText = (instant: string, nowMs: number, to: "minutes" | "seconds" = "minutes"): string => {
  const local = localTimeOf(instant)
  if (local === "") return instant
  return wallClockText(`${local}:${digits(new Date(instant).getSeconds())}`, nowMs, to)
}

/** The day of a date, `2026-11-24`: `Tue 24 Nov`; the year where it is not this one. */
export const dayText = (date: string, nowMs: number): string => {
  const day = new Date(`${date.slice(0, 10)}T00:00:00Z`)
  if (Number.isNaN(day.getTime())) return date
  const year = day.getUTCFullYear()
  const yearWord = year === new Date(nowMs).getUTCFullYear() ? "" : ` ${year}`
  return `${weekdays.format(day)} ${day.getUTCDate()} ${months.format(day)}${yearWord}`
}

const weekdays = new Intl.DateTimeFormat("en", { timeZone: "UTC", weekday: "short" })
const months = new Intl.DateTimeFormat("en", { timeZone: "UTC", month: "short" })

/** What such a field or an address says, as an instant of the years that the server knows; undefined while it says none. */
export const instantOf = (text: string): string | undefined => {
  const date = new Date(text)
  const year = date.getUTCFullYear()
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined
}

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
export const wallClockText = (localTime: string, nowMs: number): string => {
  const shown = new Date(`${localTime.slice(0, 19)}Z`)
  if (Number.isNaN(shown.getTime())) return localTime
  const year = shown.getUTCFullYear()
  const yearWord = year === new Date(nowMs).getUTCFullYear() ? "" : ` ${year}`
  const [weekday, day, month] = [weekdays.format(shown), shown.getUTCDate(), months.format(shown)]
  return `${weekday} ${day} ${month}${yearWord}, ${localTime.slice(11, 16)}`
}

const weekdays = new Intl.DateTimeFormat("en", { timeZone: "UTC", weekday: "short" })
const months = new Intl.DateTimeFormat("en", { timeZone: "UTC", month: "short" })

/** What such a field or an address says, as an instant of the years that the server knows; undefined while it says none. */
export const instantOf = (text: string): string | undefined => {
  const date = new Date(text)
  const year = date.getUTCFullYear()
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined
}

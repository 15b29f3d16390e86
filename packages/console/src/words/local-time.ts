/**
 * Instants as the fields of a browser take them: the reader's own wall clock, without a zone.
 */

const digits = (value: number, length = 2): string => String(value).padStart(length, "0")

/** An instant for a `datetime-local` field, to the minute; nothing where it is none. */
export const localTimeOf = (instant: string | undefined): string => {
  const date = new Date(instant ?? "")
  if (Number.isNaN(date.getTime())) return ""
  const day = [digits(date.getFullYear(), 4), digits(date.getMonth() + 1), digits(date.getDate())].join("-")
  return `${day}T${digits(date.getHours())}:${digits(date.getMinutes())}`
}

/** An instant as a wall clock shows it that stands in another zone, of `2026-11-24T09:30:00.000+01:00`. */
export const wallClockText = (localTime: string): string => {
  const shown = new Date(`${localTime.slice(0, 19)}Z`)
  return Number.isNaN(shown.getTime()) ? localTime : wallClock.format(shown)
}

const wallClock = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit"
})

/** What such a field or an address says, as an instant of the years that the server knows; undefined while it says none. */
export const instantOf = (text: string): string | undefined => {
  const date = new Date(text)
  const year = date.getUTCFullYear()
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined
}

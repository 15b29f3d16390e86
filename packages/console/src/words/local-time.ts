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

/** What such a field says, as an instant; undefined while it says nothing whole. */
export const instantOf = (local: string): string | undefined => {
  const date = new Date(local)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

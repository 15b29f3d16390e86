/**
 * An instant in a query; in an address the + of an offset is written %2B.
 *
 * The database's own calendar is Gregorian like this one, and a day that neither
 * has is refused here instead of being taken for another.
 */
import { Schema } from "effect"

const form =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

export const Instant = Schema.String.check(
  Schema.isPattern(form, { message: "Expected an instant like 2026-11-20T23:30:00Z" }),
  Schema.makeFilter((text: string) => calendarFault(text))
)

const calendarFault = (text: string): string | undefined => {
  const [, year, month, day] = form.exec(text) ?? []
  const noon = new Date(`${year}-${month}-${day}T12:00:00Z`)
  if (Number.isNaN(noon.getTime()) || noon.getUTCDate() !== Number(day))
    return "Expected a day that the calendar has"
  const inUtc = new Date(text).getUTCFullYear()
  return inUtc >= 1 && inUtc <= 9999 ? undefined : "Expected an instant between the years 1 and 9999"
}

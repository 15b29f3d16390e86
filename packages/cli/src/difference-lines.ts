/**
 * What differs between two definitions, as lines: the place, what was and what is.
 *
 * Texts of several lines are told by the lines that differ, because a prompt
 * that is cut to one line looks the same before and after.
 */
import type { JsonDifference } from "@tropism/domain/json-diff"
import { valueText } from "./change-text.ts"
import { limits } from "./limits.ts"
import type { Paint } from "./terminal/paint.ts"
import { printable } from "./terminal/text.ts"

/** One line for each place, more for a long text. */
export const differenceLines = (
  changes: ReadonlyArray<JsonDifference>,
  paint: Paint
): ReadonlyArray<string> =>
  changes.flatMap(({ pointer, before, after }) => {
    const place = printable(pointer === "" ? "all" : pointer.slice(1).replaceAll("/", "."))
    if (isLong(before) && isLong(after)) return [`  ${place}:`, ...lineDifferences(before, after, paint)]
    return [`  ${place}: ${paint.bad(valueText(before))} → ${paint.good(valueText(after))}`]
  })

const isLong = (value: unknown): value is string =>
  typeof value === "string" && (value.includes("\n") || value.length > 60)

/** The lines between the first and the last that differ. */
const lineDifferences = (before: string, after: string, paint: Paint): ReadonlyArray<string> => {
  const [old, now] = [before.split("\n"), after.split("\n")]
  const most = Math.min(old.length, now.length)
  let head = 0
  while (head < most && old[head] === now[head]) head++
  let tail = 0
  while (tail < most - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++
  return [
    ...some(old.slice(head, old.length - tail)).map((line) => paint.bad(`    - ${printable(line)}`)),
    ...some(now.slice(head, now.length - tail)).map((line) => paint.good(`    + ${printable(line)}`))
  ]
}

const some = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length <= limits.differenceLines
    ? lines
    : [...lines.slice(0, limits.differenceLines), `… and ${lines.length - limits.differenceLines} more`]

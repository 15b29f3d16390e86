/**
 * Checks requests that were sent again under a key: each has one effect, and everybody was told the same.
 */
import { type Checker, type Remains, unless } from "./remains.ts"

/** The objects that were made under a key. */
const madeUnder = ({ events }: Remains, wanted: string): number =>
  events.filter(
    ({ objectType, snapshot, type }) =>
      type === "created" && objectType === "Receipt" && snapshot.properties["key"] === wanted
  ).length

/** What was answered was done once, and what was not answered was done at most once. */
const keyedOnce: Checker = (remains) => {
  const told = new Set(remains.acknowledged.keyed.map(({ key }) => key))
  return ["receipt-0", "receipt-1", "receipt-2"].flatMap((key) => {
    const made = madeUnder(remains, key)
    return unless(
      made === 1 || (made === 0 && !told.has(key)),
      `under ${key} ${made} objects were made${told.has(key) ? ", and it was answered" : ""}`
    )
  })
}

/** Whoever was told what came of a key was told the same. */
const keyedAlike: Checker = ({ acknowledged }) =>
  [...Map.groupBy(acknowledged.keyed, ({ key }) => key)].flatMap(([key, told]) =>
    unless(
      new Set(told.map(({ answer }) => answer)).size === 1,
      `of ${key} there were told: ${told.map(({ answer }) => answer).join(" and ")}`
    )
  )

export const checkKeys = { keyedOnce, keyedAlike }

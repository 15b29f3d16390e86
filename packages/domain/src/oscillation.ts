/**
 * Whether a value goes back and forth between agents that do not agree.
 *
 * Judged on the history of the thing and not on a chain, so two agents that
 * quarrel by schedule, each change a chain of its own, are recognised as well.
 * A person's word in between, an approval included, begins the count anew.
 */

/** How far back is looked, and how often a value may come back. */
export const oscillationBounds = {
  /** The latest versions of an object that are looked at. */
  versions: 12,
  /** Properties of one change that are looked at. */
  properties: 100,
  /** So often a property may return to a value that it had; then the change wakes nobody. */
  returns: 3,
  withinMs: 3_600_000
} as const

/** The values that agents alone have given a property, oldest first, as fingerprints. */
export interface PropertyTurns {
  readonly property: string
  readonly values: ReadonlyArray<string>
}

/** How often a value came that had been there before. */
export const countReturns = (values: ReadonlyArray<string>): number => values.length - new Set(values).size

/** Finds a property that goes back and forth, and says so. */
export const findOscillation = (turns: ReadonlyArray<PropertyTurns>): string | undefined => {
  const found = turns.find(({ values }) => countReturns(values) >= oscillationBounds.returns)
  return (
    found &&
    `The property ${found.property} goes back and forth: agents changed it ${found.values.length} times between ${new Set(found.values).size} values, with no person's word in between.`
  )
}

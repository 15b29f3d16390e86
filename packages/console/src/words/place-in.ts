/**
 * Versions as an address names them.
 */

/** The version that a text names, where there is such a one. */
export const placeIn = (text: string | undefined, newest: number): number | undefined => {
  const version = Number(text)
  return Number.isInteger(version) && version >= 1 && version <= newest ? version : undefined
}

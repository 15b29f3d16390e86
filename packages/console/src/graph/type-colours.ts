/**
 * A colour for each type of object, in the order in which types come up; all are readable on light and dark.
 */
const colours = [
  "#2f9e6e",
  "#d97706",
  "#3b82f6",
  "#a855f7",
  "#e11d48",
  "#0891b2",
  "#84902a",
  "#a16a4b"
] as const

/** Of the types behind those that have a colour of their own. */
export const otherColour = "#8a8a83"

export const typeColour = (types: ReadonlyArray<string>, type: string): string => {
  const place = types.indexOf(type)
  return (place === -1 ? undefined : colours[place]) ?? otherColour
}

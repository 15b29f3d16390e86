/**
 * What people and models say in comparisons: words that differ, so that no database stores them for nothing.
 */

const syllables = ["ka", "lo", "mi", "ne", "ru", "so", "ta", "vi", "wel", "dor", "fin", "gan"]

/** A text of so many characters, the same for the same seed. */
export const wordsOf = (seed: number, characters: number): string => {
  let state = (seed * 2_654_435_761 + 12_345) % 2_147_483_647
  const next = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  let text = ""
  while (text.length < characters) {
    for (let part = 1 + next(4); part > 0; part--) text += syllables[next(syllables.length)] ?? ""
    text += " "
  }
  return text.slice(0, characters)
}

/**
 * What the palette finds: which entries fit the words, in which order.
 *
 * Pure. Words fit in any order and any case; the better an entry fits, the
 * earlier it comes, whatever it is: named so, begins so, a word of it begins so,
 * has it inside.
 */

export interface Entry {
  /** Names the entry in the list. */
  readonly id: string
  readonly group: string
  /** May be anybody's text. */
  readonly title: string
  /** What it is, or where it leads. */
  readonly hint: string
  readonly open: () => void
}

/** Whether all words occur in a text. */
export const fits = (text: string, words: string): boolean => {
  const within = text.toLowerCase()
  return wordsOf(words).every((word) => within.includes(word))
}

/** Those that fit, at most `most` of each group, the best of each. */
export const fitting = (entries: ReadonlyArray<Entry>, words: string, most: number): ReadonlyArray<Entry> => {
  const found = entries.filter(({ title, hint }) => fits(`${title} ${hint}`, words))
  const rank = rankOf(words)
  const groups = Map.groupBy(found, ({ group }) => group)
  return [...groups.values()].flatMap((group) => group.toSorted((a, b) => rank(a) - rank(b)).slice(0, most))
}

/** The best first; of those that fit alike, what the console knows stands before objects, and these before what was said. */
export const inOrder = (
  known: ReadonlyArray<Entry>,
  objects: ReadonlyArray<Entry>,
  said: ReadonlyArray<Entry>,
  words: string,
  mostObjects: number
): ReadonlyArray<Entry> => {
  const rank = rankOf(words)
  const unique = [...new Map(objects.map((entry) => [entry.id, entry])).values()]
  const best = unique.toSorted((a, b) => rank(a) - rank(b)).slice(0, mostObjects)
  return [...known, ...best, ...said].toSorted((a, b) => rank(a) - rank(b))
}

/** How well an entry fits, 0 the best; without words all fit alike. */
const rankOf = (words: string): ((entry: Entry) => number) => {
  const said = words.trim().toLowerCase()
  if (said === "") return () => 0
  const number = said.replace(/^#/, "")
  return ({ title, hint }) => {
    const name = title.toLowerCase()
    if (name === said || hint === `#${number}`) return 0
    if (name.startsWith(said)) return 1
    if (hint.startsWith(`#${number}`)) return 2
    return name.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(said)) ? 3 : 4
  }
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")

/** Whether the words are the id of a run, an object or a task. */
export const isId = (words: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(words.trim())

/**
 * What the palette finds: which entries fit the words, in which order.
 *
 * Pure. Words fit in any order and any case; what begins with them comes first.
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

/** Those that fit, at most `most` of each group; what begins with the words stands before what has them inside. */
export const fitting = (entries: ReadonlyArray<Entry>, words: string, most: number): ReadonlyArray<Entry> => {
  const found = entries.filter(({ title, hint }) => fits(`${title} ${hint}`, words))
  const beginning = words.trim().toLowerCase()
  const groups = Map.groupBy(found, ({ group }) => group)
  return [...groups.values()].flatMap((group) =>
    group.toSorted((a, b) => Number(begins(b, beginning)) - Number(begins(a, beginning))).slice(0, most)
  )
}

/** What is named exactly so comes first, then what the console knows, then objects: those whose key begins so before others. */
export const inOrder = (
  known: ReadonlyArray<Entry>,
  objects: ReadonlyArray<Entry>,
  words: string,
  mostObjects: number
): ReadonlyArray<Entry> => {
  const said = words.trim().toLowerCase()
  const rank = (entry: Entry): number => (isNamed(entry, said) ? 0 : begins(entry, said) ? 1 : 2)
  const unique = [...new Map(objects.map((entry) => [entry.id, entry])).values()]
  const best = unique.toSorted((a, b) => rank(a) - rank(b)).slice(0, mostObjects)
  const all = [...known, ...best]
  return [...all.filter((entry) => isNamed(entry, said)), ...all.filter((entry) => !isNamed(entry, said))]
}

const isNamed = ({ title }: Entry, said: string): boolean => title.toLowerCase() === said

const begins = ({ title }: Entry, beginning: string): boolean => title.toLowerCase().startsWith(beginning)

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")

/** Whether the words are the id of a run, an object or a task. */
export const isId = (words: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(words.trim())

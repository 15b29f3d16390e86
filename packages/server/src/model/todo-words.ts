/**
 * What TodoAssistant's script makes of plain words: tidied text, and the stems by which two wordings are compared.
 *
 * A message may be long, so nothing here looks at a letter more than a few
 * times: runs of blanks are gathered first, and whatever is compared is short.
 */

/** Blanks gathered to one each, quotes and dashes made plain; lines stay lines. */
export const tidy = (text: string): string =>
  text
    .replace(/[‘’‛`´]/g, "'")
    .replace(/[“”„«»]/g, '"')
    .replace(/[–—]/g, "-")
    .replace(/[^\S\n]+/g, " ")
    .replace(/\n+/g, "\n")
    .trim()

/** A word without the endings that English puts on it; what is left need not be a word. */
export const stemOf = (word: string): string => {
  const plain = irregular.get(word) ?? word
  const base = withoutEnding(plain)
  const bare = base.length > 3 && base.endsWith("e") ? base.slice(0, -1) : base
  return sameMeaning.get(bare) ?? bare
}

const withoutEnding = (word: string): string => {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`
  if (word.length > 4 && /(?:ss|sh|ch|x|z)es$/.test(word)) return word.slice(0, -2)
  if (word.length > 3 && word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1)
  if (word.length > 5 && word.endsWith("ing")) return undoubled(word.slice(0, -3))
  if (word.length > 4 && word.endsWith("ied")) return `${word.slice(0, -3)}y`
  if (word.length > 4 && word.endsWith("ed")) return undoubled(word.slice(0, -2))
  return word
}

const undoubled = (word: string): string => (/([bdgmnprt])\1$/.test(word) ? word.slice(0, -1) : word)

const irregular = new Map(
  Object.entries({
    bought: "buy",
    paid: "pay",
    sent: "send",
    wrote: "write",
    written: "write",
    took: "take",
    taken: "take",
    made: "make",
    did: "do",
    done: "do",
    went: "go",
    gone: "go",
    got: "get",
    gotten: "get",
    met: "meet",
    read: "read",
    ran: "run",
    fed: "feed",
    brought: "bring",
    told: "tell",
    spoke: "speak",
    spoken: "speak",
    gave: "give",
    given: "give",
    found: "find",
    left: "leave",
    built: "build",
    sold: "sell",
    swept: "sweep",
    drove: "drive",
    driven: "drive",
    ate: "eat",
    eaten: "eat",
    saw: "see",
    seen: "see",
    put: "put",
    cut: "cut",
    set: "set",
    began: "begin",
    chose: "choose",
    chosen: "choose",
    caught: "catch",
    taught: "teach",
    thought: "think",
    wore: "wear",
    hung: "hang",
    held: "hold",
    kept: "keep",
    shut: "shut",
    rang: "ring",
    swam: "swim",
    threw: "throw",
    thrown: "throw",
    dropped: "drop",
    booked: "book",
    lent: "lend",
    beat: "beat",
    withdrew: "withdraw",
    drew: "draw",
    drawn: "draw",
    hid: "hide",
    fixed: "fix",
    mailed: "mail"
  })
)

/** Past forms that are the verb itself as well: alone, they do not tell that something was done. */
export const pastOnlyBase = /^(?:read|put|cut|set|shut|beat|hit|let|cost|spread)\b/i

/** Whether a word is the past of a verb. */
export const isPast = (word: string): boolean => {
  const said = word.toLowerCase()
  return irregular.has(said) || (/^[a-z]{2,}ed$/.test(said) && !noPast.has(said))
}

const noPast = new Set(
  "need feed seed weed speed bed red shed hundred wed indeed breed proceed exceed succeed freed sled".split(
    " "
  )
)

/** Words that people use for each other in a list of things to do. */
const sameMeaning = new Map(
  Object.entries({
    mum: "mom",
    mother: "mom",
    mommy: "mom",
    father: "dad",
    daddy: "dad",
    phon: "call",
    telephon: "call",
    ring: "call",
    purchas: "buy",
    dr: "doctor",
    repair: "fix"
  })
)

/** Words that say nothing of which task is meant. */
const empty = new Set(
  "a an the my our your this that these those to of for on in at with about from and or task tasks todo todos item items one ones thing things please i me it is was be been has have had some any entry reminder".split(
    " "
  )
)

/** The words of a text that say something, as stems. */
export const stemsOf = (text: string): ReadonlyArray<string> => tellingWords(text).map(stemOf)

/** The words of a text that say something, as they are spelled. */
export const tellingWords = (text: string): ReadonlyArray<string> => {
  const words =
    text
      .toLowerCase()
      .replace(/to-dos?\b/g, "todo")
      .match(/[\p{L}\p{N}]+/gu) ?? []
  const telling = words.filter((word) => !empty.has(word))
  return telling.length > 0 ? telling : words
}

/** Whether any word of a text can tell which task is meant. */
export const saysSomething = (text: string): boolean =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).some((word) => !empty.has(word))

/** Whether two stems are the same but for a slip of the finger. */
export const isAlike = (one: string, other: string): boolean => {
  if (one === other) return true
  const longest = Math.max(one.length, other.length)
  if (longest > 40 || longest < 4 || one[0] !== other[0]) return false
  return distanceOf(one, other) <= (longest >= 8 ? 2 : 1)
}

/** Letters to add, drop, change or swap with their neighbour. */
const distanceOf = (one: string, other: string): number => {
  let before: ReadonlyArray<number> = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const next = [row]
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      next.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (before[column - 2] ?? 0) + 1 : longestWord
        )
      )
    }
    before = last
    last = next
  }
  return last[other.length] ?? longestWord
}

const longestWord = 1_000

/** A title as it is kept: without quotes around it and marks behind it, beginning with a capital. */
export const titleOf = (text: string): string => {
  const bare = unquoted(text.trim())
  const plain = bare === text.trim() ? bare.replace(/^[-:,\s]+/, "").replace(/[\s.!,;:]{1,20}$/, "") : bare
  return plain.charAt(0).toUpperCase() + plain.slice(1)
}

export const unquoted = (text: string): string => /^(["'])([^"]*)\1$/.exec(text)?.[2] ?? text

/**
 * Reads off words which task is meant: a number, a place in the list, "it", all of them, or words of a title.
 */
import type { ListStatus, TaskRef } from "./todo-intents.ts"
import { unquoted } from "./todo-words.ts"

const small = "one two three four five six seven eight nine ten eleven twelve".split(" ")
const places = "first second third fourth fifth sixth seventh eighth ninth tenth".split(" ")

const noun =
  "(?:tasks?|to-?dos?|to dos?|items?|entry|entries|things?|ones?|numbers?|nos?\\.?|ids?|reminders?)"
const digits = "#?\\d{1,9}"
const several = `${digits}(?:(?: ?, ?(?:and )?| and | & | ?- ?| to | through )${digits})*`

const byNumber = new RegExp(`^(?:the |my )?(?:(?:${noun} )*(?:#|number |no\\.? ?|id )?)?(${several})$`, "i")
const repeated = new RegExp(`\\b${noun} (?=#?\\d)`, "gi")
const byWord = new RegExp(
  `^(?:the |my )?(?:tasks?|items?|to-?dos?|number|no\\.?) (?:number )?(${small.join("|")})$`,
  "i"
)
const byPlace = new RegExp(
  `^(?:the |my )?(?:very )?(${places.join("|")}|last|final|latest|\\d{1,3}(?:st|nd|rd|th))(?: ${noun})?(?: (?:on|in|of|from) (?:my|the|that) (?:to-?do )?list)?$`,
  "i"
)
const byPointing =
  /^(?:it|that|this|them|these|those|both|both of (?:them|these|those)|(?:that|this|the same) (?:one|task|item|to-?do)|(?:these|those) (?:tasks|items|ones|two))$/i
const every =
  /^(?:(?:all|every|everything|each|any|every single|the whole|my whole|my entire|the entire|the rest)\b(?: of)?(?: the| my| these| those| them)?|(?:my|the) (?=(?:completed|finished|done|pending|open|remaining)\b))(?: (completed|finished|done|complete|checked off|pending|open|remaining|outstanding|unfinished|incomplete))?(?: (?:tasks?|to-?dos?|items?|things?|ones?|list|stuff|of them))?(?: (?:on|from|in) (?:my|the) (?:to-?do )?list)?(?: (?:that (?:are|is|i have|i've) )?(completed|finished|done|pending|open|left|already done))?$/i
const nakedGroup =
  /^(?:(completed|finished|done|pending|open|remaining) (?:tasks|to-?dos|items|things|ones|stuff)|(completed|finished))$/i

/** Reads a reference; text in quotes is always a title. */
export const readRef = (said: string, isLoose = false): TaskRef => {
  const text = said.trim().replace(/[\s.!?,:]+$/, "")
  const inQuotes = unquoted(text)
  if (inQuotes !== text) return { kind: "title", text: inQuotes, isLoose: false }
  if (text === "") return { kind: "none" }
  const known = readNumbers(text) ?? readPlace(text) ?? readGroup(text)
  if (known) return known
  if (byPointing.test(text)) return { kind: "it" }
  const title = bareTitle(text)
  return title === "" ? { kind: "none" } : { kind: "title", text: title, isLoose }
}

const readNumbers = (text: string): TaskRef | undefined => {
  const numbers = byNumber.exec(text.replace(repeated, (found, at: number) => (at === 0 ? found : "")))?.[1]
  if (numbers) return { kind: "ids", ids: idsIn(numbers) }
  const word = byWord.exec(text)?.[1]
  return word ? { kind: "ids", ids: [small.indexOf(word.toLowerCase()) + 1] } : undefined
}

/** At most so many tasks are meant by one range. */
const rangeMaxTasks = 50

const idsIn = (text: string): ReadonlyArray<number> => {
  const ids = new Set<number>()
  for (const part of text.split(/ ?, ?(?:and )?| and | & /)) {
    const [from = 0, to = from] = part
      .split(/ ?- ?| to | through /)
      .map((each) => Number(each.replace("#", "")))
    const last = to < from ? from : Math.min(to, from + rangeMaxTasks - 1)
    for (let id = from; id <= last; id++) ids.add(id)
    ids.add(Math.min(to, last))
  }
  return [...ids]
}

const readPlace = (text: string): TaskRef | undefined => {
  const word = byPlace.exec(text)?.[1]?.toLowerCase()
  if (word === undefined) return undefined
  const place = places.indexOf(word) + 1
  return { kind: "place", place: place > 0 ? place : Number.parseInt(word, 10) || -1 }
}

const readGroup = (text: string): TaskRef | undefined => {
  const found = every.exec(text) ?? nakedGroup.exec(text)
  if (!found) return undefined
  return { kind: "all", status: statusOf(found[1] ?? found[2]) }
}

const statusOf = (word: string | undefined): ListStatus =>
  word === undefined
    ? "all"
    : /^(?:completed?|finished|done|already done|checked off)$/i.test(word)
      ? "completed"
      : "pending"

const before = new RegExp(
  `^(?:(?:the|my|that|this|a|an) )?(?:${noun.replace("ones?|", "")}|one) (?:(?:called|named|titled|about|for|to|regarding|with|where i|that says|saying|of|on)\\b ?)?(?=\\S)`,
  "i"
)
const behind = new RegExp(
  `(?: (?:${noun}))?(?: (?:from|on|off|off of|in|to) (?:my|the) (?:(?:to-?do|task|pending) )?(?:list|tasks|todos|plate))?$`,
  "i"
)

/** Words of a title without the words around it. */
const bareTitle = (text: string): string =>
  unquoted(
    text
      .replace(/^(?:all |just )?(?:of )?/i, "")
      .replace(before, "")
      .replace(/^(?:the|my|that|this) /i, "")
      .replace(behind, "")
      .trim()
  )

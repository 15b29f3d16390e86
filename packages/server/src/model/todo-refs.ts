/**
 * Reads off words which task is meant: a number, a place in the list, "it", all of them, or words of a title.
 */
import type { ListStatus, TaskRef } from "./todo-intents.ts"
import { unquoted } from "./todo-words.ts"

const cardinals = "one two three four five six seven eight nine ten eleven twelve".split(" ")
const ordinals = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(
  " "
)

const noun =
  "(?:tasks?|to-?dos?|to dos?|items?|entry|entries|points?|things?|ones?|numbers?|num|nos?\\.?|nr\\.?|ids?|reminders?)"
const digits = "#?\\d{1,9}"
const joint = "(?: ?, ?(?:and )?| and (?:also )?| & | ?\\+ ?| ?- ?| to | through | plus | as well as )"
const joints = new RegExp(` ?, ?(?:and )?| and (?:also )?| & | ?\\+ ?| plus | as well as `)

const byNumber = new RegExp(
  `^(?:both )?(?:the |my )?(?:${noun} )*(?:#|number |numbers |no\\.? ?|nr\\.? ?|id )?(${digits}(?:${joint}${digits})*)(?: (?:task|to-?do|item|one))?$`,
  "i"
)
const repeated = new RegExp(`\\b(?:the )?${noun} ?(?=#?\\d)`, "gi")
const cardinal = new RegExp(`\\b(?:${cardinals.join("|")})\\b`, "gi")
const counting = new RegExp(
  `^(?:both )?(?:the |my )?(?:tasks?|items?|to-?dos?|points?|numbers?|no\\.?|nr\\.?)\\b`,
  "i"
)
const onList = "(?: (?:on|in|of|from|off) (?:my|the|that|this) (?:to-?do |task )?(?:lists?|tasks|to-?dos))?"
const ordinal = `(?:${ordinals.join("|")}|last|final|latest|newest|\\d{1,3}(?:st|nd|rd|th)|(?:second|third|next)[- ](?:to[- ])?last)`
const byPlace = new RegExp(
  `^(?:both )?(?:the |my )?(?:very )?(${ordinal}(?:(?: ?, ?(?:and )?| and | & )(?:the )?${ordinal})*)(?: ${noun})?${onList}$`,
  "i"
)
const byEnd = new RegExp(
  `^(?:the |my )?(first|top|last|bottom) (\\d|${cardinals.join("|")}|couple)(?: (?:of )?(?:them|${noun}))?${onList}$`,
  "i"
)
const byPointing =
  /^(?:it|that|this|them|these|those|both|both of (?:them|these|those)|(?:that|this|the same) (?:one|task|item|to-?do|thing)|(?:these|those) (?:tasks|items|ones|two))$/i
const every =
  /^(?:(?:all|every|everything|each|any|every single|the whole|my whole|my entire|the entire|the rest)\b(?: of)?(?: the| my| these| those| them)?|(?:my|the) (?=(?:completed|finished|done|pending|open|remaining)\b))(?: (completed|finished|done|complete|checked off|pending|open|remaining|outstanding|unfinished|incomplete))?(?: (?:to-?do )?(?:tasks?|to-?dos?|items?|things?|ones?|lists?|stuff|of them))?(?: (?:on|from|in) (?:my|the) (?:to-?do )?list)?(?: (?:that (?:are|is|i have|i've|i) )?(?:already )?(completed|finished|done|pending|open|left))?$/i
const nakedGroup =
  /^(?:(completed|finished|done|pending|open|remaining) (?:tasks|to-?dos|items|things|ones|stuff)|(completed|finished))$/i
const wholeList = /^(?:the |my |our )?(?:(?:to-?do|to do|task) )?(?:lists?|tasks|to-?dos)$/i

/** Reads a reference; text in quotes is always a title. */
export const readRef = (said: string, isLoose = false): TaskRef => {
  const text = said.trim().replace(/[\s.!?,:]+$/, "")
  const inQuotes = unquoted(text)
  if (inQuotes !== text) return { kind: "title", text: inQuotes, isLoose: false }
  if (text === "") return { kind: "none" }
  if (wholeList.test(text)) return { kind: "all", status: "all" }
  const known = readNumbers(text) ?? readPlaces(text) ?? readGroup(text)
  if (known) return known
  if (byPointing.test(text)) return { kind: "it" }
  const title = bareTitle(text)
  return title === "" ? { kind: "none" } : { kind: "title", text: title, isLoose }
}

/** Whether words can mean nothing but tasks that are there: numbers, places, quotes, or a noun of the list. */
export const isPlainRef = (said: string): boolean => {
  const { kind } = readRef(said)
  return kind !== "title" || /^"|\b(?:task|to-?do|item|entry|one|reminder)s?\b/i.test(said.trim())
}

const readNumbers = (text: string): TaskRef | undefined => {
  const inDigits = counting.test(text)
    ? text.replace(cardinal, (word) => String(cardinals.indexOf(word.toLowerCase()) + 1))
    : text
  const numbers = byNumber.exec(
    inDigits.replace(repeated, (found, at: number) => (at === 0 ? found : ""))
  )?.[1]
  if (numbers) return { kind: "ids", ids: idsIn(numbers) }
  const spelled = cardinals.indexOf(text.toLowerCase()) + 1
  // "One" alone is any.
  return spelled > 1 ? { kind: "ids", ids: [spelled] } : undefined
}

/** At most so many tasks are meant by one range. */
const rangeMaxTasks = 50

const idsIn = (text: string): ReadonlyArray<number> => {
  const ids = new Set<number>()
  for (const part of text.split(joints)) {
    const [from = 0, to = from] = part
      .split(/ ?- ?| to | through /)
      .map((each) => Number(each.replace("#", "")))
    const last = to < from ? from : Math.min(to, from + rangeMaxTasks - 1)
    for (let id = from; id <= last; id++) ids.add(id)
    ids.add(Math.min(to, last))
  }
  return [...ids]
}

const readPlaces = (text: string): TaskRef | undefined => {
  const [, end, count] = byEnd.exec(text) ?? []
  if (end !== undefined && count !== undefined) {
    const many = /^couple$/i.test(count) ? 2 : Number(count) || cardinals.indexOf(count.toLowerCase()) + 1
    const places = Array.from({ length: many }, (_, index) => index + 1)
    return { kind: "place", places: /^(?:first|top)$/i.test(end) ? places : places.map((place) => -place) }
  }
  const words = byPlace.exec(text)?.[1]?.toLowerCase()
  if (words === undefined) return undefined
  return {
    kind: "place",
    places: words.split(/ ?, ?(?:and )?(?:the )?| and (?:the )?| & (?:the )?/).map(placeOf)
  }
}

const placeOf = (word: string): number => {
  if (/[- ]last$/.test(word)) return word.startsWith("third") ? -3 : -2
  const place = ordinals.indexOf(word) + 1
  return place > 0 ? place : Number.parseInt(word, 10) || -1
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
      .replace(/^(?:all of |just )/i, "")
      .replace(before, "")
      .replace(/^(?:the|my|that|this) /i, "")
      .replace(behind, "")
      .trim()
  )

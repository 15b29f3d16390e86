/**
 * Reads off words that somebody wants to see tasks, and which: all, pending or completed ones, or those about something.
 */
import type { Intent, ListStatus } from "./todo-intents.ts"
import { titleOf } from "./todo-words.ts"

const things =
  "(?:tasks?|to-?dos?|to dos?|to do list|list|items?|things?|stuff|everything|agenda|plate|chores|errands|reminders|work|ones|all)"
const asksToSee =
  /^(?:show|list|display|view|see|give|tell|read|print|get|fetch|pull up|bring up|check|review|look at|go over|recap|summari[sz]e|remind me (?:what|of)|what|which|how many|how much|anything|any|do i|have i|did i|am i|is there|are there|is anything|where(?:'s| is| are)|count|run through|let me know|know|overview|status|a list|all|everything|the|my|current|pending|open|completed|finished|done|remaining|outstanding|unfinished|todo|to-do|to do|tasks|todos|list|whats|can i|hit me|catch me up|update me)\b/i
const nouns = new RegExp(`\\b${things}\\b`, "i")

const saysNotDone =
  /\b(?:pending|left|remain|remains|remaining|outstanding|open|unfinished|incomplete|uncompleted|undone|still|yet|active|due|next|unchecked|in progress)\b|\bto (?:be )?(?:do|done|finish|complete|get done|tackle|work on|take care of)\b(?! list)|\b(?:not|n't|haven't|didn't|havent)\b.{0,30}\b(?:done|finished?|completed?)\b|\b(?:need|have|got|supposed) to\b|\bshould i\b|\bon my plate\b|\bawaiting\b|\bwaiting\b|\bup\b$/i
const saysDone =
  /\b(?:completed?|done|finished|accomplished|achieved|crossed off|ticked off|checked off|already|closed|did i (?:do|get done|finish|complete|accomplish)|have i (?:done|finished|completed|accomplished|gotten done))\b/i
const saysAll = /\b(?:all|everything|entire|whole|full|both|every)\b/i

const aboutWords =
  "(?:about|related to|regarding|concerning|mentioning|containing|contain|contains|mention|that mention|that say|with the word|with|matching|involving|to do with|having to do with|that have to do with|including)"
const abouts: ReadonlyArray<RegExp> = [
  /^(?:search|look|find|filter|hunt)(?: (?:my|the) (?:list|tasks|to-?dos))?(?: for| by| me)?(?: (?:all |any |my |the )*(?:tasks?|to-?dos?|items?|things))?(?: (?:about|for|with|containing|related to|mentioning|matching|that mention|on|by))? (.+)$/i,
  new RegExp(
    `^(?:show|list|display|give|get|see|tell|what|which|any|do i have|are there|is there|have i got|view)\\b.{0,60}?\\b(?:tasks?|to-?dos?|items?|anything|things?|something|ones|stuff|list|have)\\b.{0,30}? ${aboutWords} (.+)$`,
    "i"
  ),
  /^(?:do i have|is there|have i got|are there|did i add|is|have i)(?: already)? (?:a |an |any |anything )(?:tasks?|to-?dos?|items?|reminders?|things?)?(?: on my list)?(?: (?:for|to|about|called|named|on|with)) (.+)$/i,
  /^(?:is|are) (.+?) on (?:my|the) (?:(?:to-?do|task) )?(?:list|plate)$/i
]

/** Reads a wish to see tasks; undefined where it is none. */
export const readListing = (text: string): Intent | undefined => {
  for (const pattern of abouts) {
    const about = pattern.exec(text)?.[1]
    if (about !== undefined && !isStatus(about))
      return {
        type: "list",
        status: statusIn(text.replace(about, "")),
        about: aboutOf(about),
        isCount: false
      }
  }
  if (!asksToSee.test(text)) return undefined
  const hasStatus = saysNotDone.test(text) || saysDone.test(text)
  const isShort = text.split(" ").length <= 14
  if (!isShort || !(nouns.test(text) || hasStatus)) return undefined
  const isCount = /\bhow (?:many|much)\b|^count\b|\bnumber of\b/i.test(text)
  return { type: "list", status: statusIn(text), about: null, isCount }
}

const statusIn = (text: string): ListStatus => {
  if (saysNotDone.test(text) && saysDone.test(text.replace(saysNotDone, "")))
    return /\b(?:and|both|as well|plus)\b/i.test(text) ? "all" : "pending"
  if (saysNotDone.test(text)) return "pending"
  if (saysDone.test(text)) return "completed"
  return saysAll.test(text) ? "all" : "all"
}

const isStatus = (text: string): boolean =>
  /^(?:me|my|the|all|every|any)?\s*(?:of )?(?:my |the )?(?:pending|open|completed|finished|done|all|everything|remaining|outstanding|unfinished|my)?\s*(?:tasks?|to-?dos?|items?|list|things?|ones)?$/i.test(
    text
  ) || new RegExp(`^${things}$`, "i").test(text)

const aboutOf = (text: string): string =>
  titleOf(
    text
      .replace(/^(?:the|a|an|my|word|the word) /i, "")
      .replace(/ (?:in (?:it|them|the title)|on (?:my|the) list|tasks?|yet|already)$/i, "")
  )

/**
 * Reads off words that somebody wants to see tasks, and which: all, pending or completed ones, or those about something.
 *
 * A clause asks for the list where all of its words are such as one asks with:
 * whatever else it holds may be a title.
 */
import type { Intent, ListStatus } from "./todo-intents.ts"
import { rule } from "./todo-lexicon.ts"
import { wellSpelled } from "./todo-verbs.ts"
import { titleOf } from "./todo-words.ts"

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/))

/** Words that ask to see, name the list, or say which part of it. */
const telling = words(
  `show list display view see give tell read print get fetch pull bring check review look go recap summarize summarise summary
  overview rundown count know task tasks todo todos to-do to-dos item items thing things stuff agenda plate chore chores errand errands
  reminders reminder lists everything anything pending left remaining remain remains outstanding open unfinished incomplete uncompleted
  undone active completed complete done finished finish accomplished achieved crossed ticked checked off closed all status progress what
  which whats many much do work next due waiting still filter entries entry`
)
/** Words that may stand beside them. */
const beside = words(
  `a an the my our me us i we you u it its is are was were am be been being have has had having do does did got get getting
  gotten can could would should shall will may might must need needs needed want wanna gonna to of on in at for from with
  by up out over down about so far yet already today tomorrow tonight now this that these those there here then week
  morning afternoon evening month moment ever again right please pls plz just only also and or but not no n't haven't
  hasn't didn't don't isn't aren't havent dont isnt arent what's how's going i've i'm i'd we've there's how any some every each both
  full complete entire whole current currently incl including include plus as well else more one ones that's
  other rest myself yours really exactly actually quick quickly long big short where when who let lets let's like love
  new old latest latter recent recently lately looking stand stands standing sitting situation today's tonight's state
  until till before after later up-to-date first time yesterday far remind through run runs hit catch update
  marked supposed make made sure tackle taken take care put saved added keep kept track tracking else's number forgot forget remember
  total exist exists them they ive im id managed tell between once see actual it's hold holding contain contains yes
  ok hey quite pretty well having awaits await awaiting tackled work working item's list's ahead way`
)

const saysNotDone =
  /\b(?:pending|left|remain|remains|remaining|outstanding|open|unfinished|incomplete|uncompleted|undone|still|yet|active|due|next|unchecked|in progress|ahead of me)\b|\bto (?:be )?(?:do|done|finish|complete|get done|tackle|work on|take care of)\b(?!,? lists?)|\b(?:not|n't|haven'?t|didn'?t|isn'?t|aren'?t)\b.{0,30}\b(?:done|finished?|completed?)\b|\b(?:need|have|got|supposed) to\b|\bshould i\b|\bon my plate\b|\bawait(?:s|ing)?\b|\bwaiting\b/i
const saysDone =
  /\b(?:completed?|done|finished|accomplished|achieved|crossed off|ticked off|checked off|ticked|checked|already|closed|did i (?:do|get done|finish|complete|accomplish|manage)|i did|have i (?:done|finished|completed|accomplished|gotten done|managed))\b/i
const saysAll = /\b(?:all|everything|entire|whole|full|both|every)\b/i

const aboutWords =
  "(?:about|related to|regarding|concerning|mentioning|containing|contain|contains|mention|that mention|that say|with the word|with|matching|involving|to do with|having to do with|that have to do with|including|for)"
const abouts: ReadonlyArray<RegExp> = [
  rule(
    "(?:search|look|find|filter|hunt)(?: (?:my|the) (?:list|tasks|to-?dos))?(?: for| by| me)?(?: (?:all |any |my |the )*(?:<noun>))?(?: (?:about|for|with|containing|related to|mentioning|matching|that mention|on|by))? {about}"
  ),
  rule(
    `(?:show|list|display|give|get|see|tell|what|which|any|do i have|are there|is there|have i got|view)\\b(?! (?:is|are) on).{0,60}?\\b(?:tasks?|to-?dos?|items?|anything|things?|something|ones|stuff|list|have)\\b.{0,30}? ${aboutWords} {about}`
  ),
  rule(
    "(?:do i have|is there|have i got|are there|did i add|is|have i)(?: already)? (?:a |an |any |anything )(?:<noun>)?(?: on my list)?(?: (?:for|to|about|called|named|on|with)) {about}"
  ),
  rule("(?:is|are) {about} on (?:my|the) (?:(?:to-?do|task) )?(?:list|plate)")
]

/** Reads a wish to see tasks; undefined where it is none. */
export const readListing = (said: string): Intent | undefined => {
  const text = wellSpelled(said)
  for (const pattern of abouts) {
    const about = pattern.exec(text)?.groups?.["about"]
    if (about !== undefined && !isOfList(about))
      return {
        type: "list",
        status: statusIn(text.replace(about, "")),
        about: aboutOf(about),
        isCount: false
      }
  }
  if (!isOfList(text) || !asksToSee.test(text)) return undefined
  const isCount = /\bhow (?:many|much)\b|^count\b|\bnumber of\b/i.test(text)
  return { type: "list", status: statusIn(text), about: null, isCount }
}

const asksToSee =
  /\b(?:show|list|lists|display|view|see|give|print|fetch|recap|summar\w+|overview|rundown|tasks?|to-?dos?|items?|things?|stuff|ones?|pending|open|left|remain\w*|outstanding|unfinished|incomplete|undone|completed?|done|finish(?:ed)?|accomplished|achieved|progress|plate|agenda|chores|errands|everything|anything|next|do)\b/i

const isOfList = (text: string): boolean => {
  const said =
    text
      .toLowerCase()
      .replace(/\bto[- ]?do\b/g, "todo")
      .match(/[\p{L}\p{N}'-]+/gu) ?? []
  return (
    said.length <= 20 &&
    said.some((word) => telling.has(word)) &&
    said.every((word) => telling.has(word) || beside.has(word))
  )
}

const statusIn = (text: string): ListStatus => {
  const isDone = saysDone.test(text.replace(new RegExp(saysNotDone, "gi"), ""))
  if (saysNotDone.test(text))
    return isDone && /\b(?:and|both|as well|plus|or|incl|including)\b/i.test(text) ? "all" : "pending"
  if (saysAll.test(text) && /\b(?:and|both|as well|plus|or|incl|including)\b/i.test(text)) return "all"
  return saysDone.test(text) ? "completed" : "all"
}

const aboutOf = (text: string): string =>
  titleOf(
    text
      .replace(/^(?:the|a|an|my|word|the word) /i, "")
      .replace(/ (?:in (?:it|them|the title)|on (?:my|the) list|tasks?|yet|already)$/i, "")
  )

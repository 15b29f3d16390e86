/**
 * Reads off words what is to be added to the list, with its description if there is one.
 *
 * What stands behind a verb of adding is one title, whatever it holds: "milk and
 * eggs" may be one errand. Several are told apart where the speaker does so: in
 * quotes, on lines, by numbers or semicolons, or behind "tasks" in the plural.
 */
import type { Intent, NewTask } from "./todo-intents.ts"
import { titleOf } from "./todo-words.ts"

const noun = "(?:tasks?|to-?dos?|to dos?|items?|entry|entries|reminders?|things?)"
const intro =
  "(?: (?:called|named|titled|entitled|saying|that says|with the (?:title|name)|with title|which says|for me|for myself|about|regarding|reading))?"
const small =
  "a|an|another|one more|the|this|these|those|the following|following|my|some|two|three|four|five|\\d{1,2}|a couple of|a few"

const withNoun = new RegExp(
  `^(?:add|adding|create|creating|make|making|put|insert|enter|include|log|record|save|register|write|jot|note|set up|start|open|track|append|give|schedule|have|get|need|i need|i want|i'd like|new)(?: (?:down|in|up))?(?: me)?(?: (?:${small}))*(?: (?:new|quick|extra|additional|simple|fresh))* ?(${noun})(?! ?#?\\d)(?: (?:to|on|onto|in|for) (?:my|the) (?:to-?do |task )?(?:list|lists|tasks))?${intro}(?: ?[:,-]+ ?| (?:to|for|that|of) (?:i (?:need|have|should|must) to )?| |\\n)`,
  "i"
)
const newNoun = new RegExp(
  `^(?:another |a |one more )?(?:new )?(?:task|to-?do|to do|item|reminder)(?: (?:to|for)| ?[:-]) `,
  "i"
)
const plain =
  /^(?:add|create|insert|append|include|jot down|write down|note down|note|log|put down|pencil in|record)(?: in| that)?(?::| -)? (?!(?:a |an |the |some )?(?:description|note|notes|details?|comment)\b)/i
const onList =
  /^(?:put|get|stick|throw|pop|place|chuck|toss|write|have|want|i want|i need|i'd like|enter|drop|add) (.{1,400}?) (?:to|on|onto|in|into|down on) (?:my|the|our) (?:[a-z-]+ )?(?:list|to-?dos?|tasks|agenda|plate)$/i
const goesOnList =
  /^(.{1,400}?) (?:goes|should go|needs to go|should be|needs to be|must go|belongs) (?:on|in) (?:my|the) (?:[a-z-]+ )?(?:list|to-?dos?|tasks)$/i
const reminder =
  /^(?:(?:please )?remind me(?: later| again)?(?: that i (?:need|have|should|must)(?: to)?| to| about| of| that|,)?|(?:don't|do not|never) (?:let me|forget|let me ever)(?: forget)?(?: that i (?:need|have) to| to| about)?|remember(?: that i (?:need|have) to| to| that)?|help me remember(?: to| that)?|make a note(?: of| that i need to| to| that)?:?|make sure (?:that )?i(?: remember to| don't forget to)?|keep in mind(?: to| that)?|note to self:?|(?:let's not|i (?:can't|cannot|mustn't|must not|shouldn't|don't want to)) forget(?: to| about| that)?|i(?:'ve)? (?:need|have|want|got|would like|really need) to (?:remember|make sure)(?: to| i| that i)?|i(?:'d| would) like to remember to|i need reminding to|i need a reminder to|i need to be reminded to) /i
const suffix =
  /(?:,? (?:as an?|as one) (?:new )?(?:task|to-?do|item|reminder)|(?:,? (?:to|on|onto|in|into) (?:my|the|our|that|this) (?:(?:to-?do|to do|task|tasks|shopping|grocery|daily|personal|work) )*(?:list|to-?dos|tasks|todo|agenda|list of tasks|list of things(?: to do)?)))$/i

/** Reads an adding; undefined where it is none. What is `more` of a long text belongs to its title, unread. */
export const readAdding = (text: string, more = ""): Intent | undefined => {
  const listed = onList.exec(text)?.[1] ?? goesOnList.exec(text)?.[1]
  const head = withNoun.exec(text) ?? newNoun.exec(text)
  if (head && text.length > head[0].length)
    return added(text.slice(head[0].length) + more, /s$/i.test(head[1] ?? ""))
  if (listed !== undefined && !aboutTask.test(listed)) return added(listed.replace(plain, ""), false)
  const found = reminder.exec(text) ?? plain.exec(text)
  if (found) return added(text.slice(found[0].length) + more, false)
  return emptyAdding.test(text) ? { type: "add", tasks: [] } : undefined
}

const aboutTask = /^(?:description|note|details)\b/i
const emptyAdding = new RegExp(
  `^(?:(?:add|create|make|new)(?: (?:${small}))*(?: new)?(?: ${noun})?(?: to (?:my|the) list)?|remind me|add (?:something|one|another one)(?: to (?:my|the) list)?|i (?:want|need) to add (?:a |something).{0,20})$`,
  "i"
)

const wish =
  /^(?:i (?:really |still |also |just )?(?:need|have|ought|got|gotta|must|should|am supposed|want|would like)(?: to)?|i've (?:got|gotta)(?: to)?|i'?m supposed to|gotta|got to|need to|have to|must|should|i'd better|we (?:need|have|should|must)(?: to)?|i (?:will|'ll) (?:need|have) to|tomorrow i (?:need|have|must|should)(?: to)?) /i

/** Reads "I need to …": whatever else it asks for, else something to do. */
export const readWish = (text: string, other: (rest: string) => Intent | undefined): Intent | undefined => {
  const found = wish.exec(text)
  if (!found) return undefined
  const rest = text.slice(found[0].length)
  return other(rest) ?? readAdding(rest) ?? added(rest, false)
}

/** Tasks that one request may add. */
const tasksMax = 20

const added = (said: string, isPlural: boolean): Intent => {
  const text = (said.slice(0, -suffixMaxChars) + said.slice(-suffixMaxChars).replace(suffix, "")).replace(
    /^[\s:,-]+/,
    ""
  )
  const tasks = partsOf(text, isPlural)
    .map(toTask)
    .filter(({ title }) => title !== "")
  return { type: "add", tasks: tasks.slice(0, tasksMax) }
}

const suffixMaxChars = 100

const partsOf = (text: string, isPlural: boolean): ReadonlyArray<string> => {
  if (text.includes("\n"))
    return text.split("\n").map((line) => line.replace(/^\s*(?:[-*•]|\d{1,2}[.)]) ?/, ""))
  const quotedParts =
    text.length <= longestSplit ? [...text.matchAll(/"([^"]+)"/g)].map(([quoted]) => quoted) : []
  if (quotedParts.length > 1 && /^(?:"[^"]*"(?: ?, ?(?:and )?| and | & |$))+$/.test(text)) return quotedParts
  if (text.length > longestSplit) return [text]
  const numbered = text.split(/(?:^|[\s,;]+)\d{1,2}[.)] /).filter((part) => part.trim() !== "")
  if (/^1[.)] /.test(text) && numbered.length > 1) return numbered
  if (text.includes(";")) return text.split(/ ?; ?/).map((part) => part.replace(/^and /i, ""))
  return isPlural ? text.split(/ ?, ?(?:and )?| and | & /i) : [text]
}

const longestSplit = 2_500

const described =
  /(?:,? (?:and )?with (?:the |a |an )?(?:description|details?|notes?|comment)(?: of| that says| saying)?:?|[,;.]? \(?(?:the )?(?:description|details?|notes?)(?: is| being|:| -)|,? described as|,? and (?:describe it as|note that|say in the description)) /i

const toTask = (text: string): NewTask => {
  const found = described.exec(text.slice(0, longestSplit))
  if (!found || found.index === 0) return { title: titleOf(text) }
  const description = text
    .slice(found.index + found[0].length)
    .trim()
    .replace(/^"([^"]*)"$|\)$/, "$1")
  return {
    title: titleOf(text.slice(0, found.index)),
    description: description === "" ? undefined : description
  }
}

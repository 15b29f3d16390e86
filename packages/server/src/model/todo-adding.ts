/**
 * Reads off words what is to be added to the list, with its description if there is one.
 *
 * What stands behind a verb of adding is one title, whatever it holds: "milk and
 * eggs" may be one errand. Several are told apart where the speaker does so: in
 * quotes, on lines, by numbers or semicolons, or behind "tasks" in the plural.
 */
import type { Intent, NewTask } from "./todo-intents.ts"
import { heardBy, opening, rule } from "./todo-lexicon.ts"
import { isPlainRef } from "./todo-refs.ts"
import { titleOf, unquoted } from "./todo-words.ts"

const noun = "(?:tasks?|to-?dos?|to dos?|items?|entry|entries|reminders?|things?)"
const small =
  "a|an|another|one more|the|this|these|those|the following|following|my|some|two|three|four|five|\\d{1,2}|a couple of|a few|both"
const intro =
  "(?: (?:called|named|titled|entitled|saying|that says|with the (?:title|name)|with title|which says|for me|for myself|about|regarding|reading))?"
const making =
  "add|create|make|put|insert|enter|include|log|record|save|register|write|jot|note|set up|start|open|track|append|give|schedule|have|get|need|i need|i want|i'd like|i have|i've got|there's|there is|new|here's|here is"
const placed = " (?:to|on|onto|in|into|for) (?:<list>)"

/** "add a task to …", "new todo - …", "two more things for the list: …". */
const withNoun = opening(
  `(?:(?:${making})(?: (?:down|in|up))?(?: me)?(?: (?:${small}))*(?: (?:new|quick|extra|additional|simple|fresh|more|other|separate|different))*|(?:another|one more|a|two more|\\w+ more)(?: new)?|new) ?(?<noun>${noun})(?! ?#?\\d)(?:${placed})?${intro}(?: ?[:,-]+ ?| (?:to|for|that|of) (?:i (?:need|have|should|must) to )?| (?=")| (?=[^:]{1,200}$)|\\n)(?:(?:it's|it is|that's|namely|called|please|pls|which is|titled)[: ]+)?`
)
/** "todo: …", "for my list: …", "one more for the list - …". */
const byHead = opening(
  `(?:(?:${small}|new|next|also|and|${making}) )*(?:(?:${noun})|(?:more )?(?:to|on|onto|in|into|for|thing for|one for) (?:<list>)|(?:to|on|for) (?:it|there))(?: ?[:-]+ ?| (?=to |"))`
)
const toList = opening(`(?:${making})${placed}(?: ?[:,-]+ ?|,? (?:to|that|please) | (?="))`)
const plain = opening(
  "(?:add|create|insert|append|include|jot down|write down|note down|take down|note|log|put down|pencil in|record|save|register|track)(?: in| that| also| me)?(?: ?:| -)? (?!(?:a |an |the |some )?(?:description|note|notes|details?|comment)\\b)"
)
const onList = [
  rule(
    "(?:put|get|stick|throw|pop|place|chuck|toss|write|have|want|i want|i need|i'd like|enter|drop|add|slap|bung|shove|jot|note|include|insert|save|record|log|move|squeeze|pencil) {what}(?: down)? (?:to|on|onto|in|into|down on|down in|as part of) (?:<list>)(?: <when>)*"
  ),
  rule(
    "{what} (?:goes|should go|needs to go|should be|needs to be|must go|belongs|has to go|has to be|must be|ought to be|can go)(?: added)? (?:on|in|to|onto) (?:<list>)(?: <when>)*"
  ),
  rule("{what} (?:should|must|needs to|has to|ought to) be (?:added|noted|written down|put down|remembered)"),
  rule("{what} needs (?:adding|noting|to be added)(?: (?:on|in|to|onto) (?:<list>))?"),
  rule(
    "(?:i (?:need|want|would like)|i'd like|please have|have) {what} (?:added|written down|noted)(?: (?:on|in|to|onto) (?:<list>))?"
  )
]
const reminder = opening(
  "(?:(?:please )?(?:remind|reminding) me(?! (?:what|which|how|of (?:what|my|the|all)|about my)\\b)(?: later| again)?(?: that i (?:need|have|should|must)(?: to)?| to| about| of| that|,)?|(?:don't|do not|never) (?:let me|forget|let me ever)(?: forget)?(?: that i (?:need|have) to| to| about)?:?|remember(?: that i (?:need|have) to| to| that)?|help me remember(?: to| that)?|(?:make|take) a note(?: of| to| that| to self)?:?|make sure (?:that )?i(?: remember to| don't forget to| do not forget to)?|keep in mind(?: to| that)?|note to (?:self|myself):?(?: to)?|(?:let's not|i (?:can't|cannot|mustn't|must not|shouldn't|don't want to)) forget(?: to| about| that)?|i(?:'ve)? (?:need|have|want|got|would like|really need) to (?:remember|make sure)(?: to| i| that i)?|i(?:'d| would) like to remember to|i need reminding(?: to| about)|i need a reminder(?: to| for| about)|i need to be reminded(?: to| about)|set (?:up )?a reminder(?: to| for| about|:)) "
)
const suffix =
  /(?:,? (?:as an?|as one|as my|as the) (?:new |next |another )?(?:task|to-?do|item|reminder)|(?:,? (?:to|on|onto|in|into) (?:my|the|our|that|this) (?:(?:to-?do|to do|task|tasks|shopping|grocery|daily|personal|work) )*(?:list|to-?dos|tasks|todo|agenda|list of tasks|list of things(?: to do)?)))$/i
const bareVerb = /^(?:add|put|create|insert|note|include)\b:? ?/i

/** Reads an adding; undefined where it is none. What is `more` of a long text belongs to its title, unread. */
export const readAdding = (text: string, more = ""): Intent | undefined => {
  if (aboutField.test(text)) return undefined
  const listed = toList.exec(text) ?? undefined
  if (listed && text.length > listed[0].length) return added(text.slice(listed[0].length) + more, false)
  const isApart = text.length <= 400 && apart.test(text)
  const whole = text.length <= 400 ? heardBy(onList, text.replace(apart, ""))?.["what"] : undefined
  if (whole !== undefined && !aboutTask.test(whole)) {
    const body = whole.replace(bareVerb, "")
    const head = withNoun.exec(`add ${body}`)
    return head && head[0].length < body.length + 4
      ? added(`add ${body}`.slice(head[0].length), /s$/i.test(head.groups?.["noun"] ?? ""))
      : added(body, isApart)
  }
  const head = withNoun.exec(text)
  if (head && text.length > head[0].length)
    return added(text.slice(head[0].length) + more, /s$/i.test(head.groups?.["noun"] ?? ""))
  const found = byHead.exec(text) ?? reminder.exec(text) ?? plain.exec(text)
  if (found && text.length > found[0].length)
    return added(text.slice(found[0].length) + more, /(?:tasks|todos|things|items)/i.test(found[0]))
  return emptyAdding.test(text) ? { type: "add", tasks: [] } : undefined
}

/** Words that set a field of a task that is there. */
const aboutField =
  /^(?:add|attach|put|write|set|include|append|give|use|save|note|make) .{1,300} (?:as (?:a |an |the )?(?:new )?|in(?:to)? the |to the |under )(?:title|name|description|notes?|details?|comment) (?:to|of|for|on|in|at|under) |^(?:add|attach|put|write|set|give|include|leave|append) (?:a |an |the |this |some )?(?:description|notes?|details?|comment)\b(?! ?:)/i
const aboutTask = /^(?:(?:the |a )?(?:description|note|details)\b|it$|that$|this$)/i
const emptyAdding = rule(
  `(?:add|create|make|new)(?: (?:${small}))*(?: new)?(?: ${noun})?(?: (?:to|on) (?:<list>))?|remind me|add (?:something|one|another one)(?: to (?:<list>))?|i (?:want|need) to add (?:a |something).{0,20}|i (?:have|need|want) (?:a|another|one more) (?:new )?${noun}(?: to add)?`
)

const need =
  "(?:have|'ve|had|got|need|ought|must|should|gotta|am supposed|'m supposed|'d better|had better|better|will have|will need|'ll have|'ll need|am going|still have|cannot forget|can't forget|mustn't forget|shouldn't forget)(?: to)?(?: got)?(?: to)?"
const obligation = opening(
  `(?:(?:tomorrow|today|tonight|later|next week|soon|this (?:week|weekend|evening|afternoon|morning)|at some point|some ?day),? )?(?:(?:i|we)(?: (?:really|still|also|just|finally|definitely|actually|absolutely|probably|do))*(?: |(?='))${need}(?: (?:really|still|also|just|finally|definitely|remember to|to))* |(?:gotta|got to|need to|have to|must|should|better|supposed to|needs? to|has to) |i (?:really )?(?:want|would like|wish|plan|intend|hope) to |i'd (?:really )?like to |i(?:'m| am) (?:going to|gonna|planning to|meaning to|supposed to) |i (?:need|want|could use) (?=\\S+))`
)

/** Reads "I need to …": a request where nothing else can be meant, else something to do. */
export const readWish = (text: string, other: (rest: string) => Intent | undefined): Intent | undefined => {
  const found = obligation.exec(text)
  if (!found || found[0].length >= text.length) return undefined
  const rest = text.slice(found[0].length)
  if (wishElse.test(text)) return undefined
  const intent = other(rest)
  if (intent?.type === "list" && seeing.test(rest)) return intent
  if (intent?.type === "rename" || (intent?.type === "deed" && isAboutList(intent, rest))) return intent
  return readAdding(rest) ?? added(rest, false)
}

/** What is wished and is not something to do. */
const wishElse =
  /^i (?:need|want|could use) (?:help|you|a moment|some help|to know)\b|^(?:i|we) (?:have|had|'ve|'d|got) (?!to\b|got to\b)|^(?:i|we)'ve (?!got to |to )|^(?:should|must) (?:i|we|be|say|read)\b|\bnot\b/i
const seeing = /^(?:see|know|view|check|look at|have a look|review)\b/i

const isAboutList = (intent: Extract<Intent, { readonly type: "deed" }>, rest: string): boolean => {
  if (intent.ref.kind === "ids" || intent.ref.kind === "place" || intent.ref.kind === "all") return true
  return (
    intent.ref.kind === "title" &&
    (/"|\b(?:task|to-?do|item|entry|list|title|description)\b/i.test(rest) || isPlainRef(intent.ref.text))
  )
}

/** Tasks that one request may add. */
const tasksMax = 20

const suffixMaxChars = 100

const apart =
  /,? ?\(?(?:as )?(?:(?:a |\d+|two|three|four|five|all|each|both) )*(?:separate(?:ly)?|individual(?:ly)?|different|distinct|each|one by one)(?: (?:ones?|tasks?|to-?dos?|items?|entries|things?|as (?:its|their) own (?:task|item)))?\)?$|,? ?\(?as (?:two|three|four|five|\d+) (?:tasks|to-?dos|items|entries)\)?$/i

const added = (said: string, isPlural: boolean): Intent => {
  const end = said.slice(-suffixMaxChars)
  const isApart = apart.test(end)
  const text = (
    said.slice(0, -suffixMaxChars) + end.replace(apart, "").replace(suffix, "").replace(onNote, "")
  ).replace(/^[\s:,-]+/, "")
  const tasks = partsOf(text.replace(heading, ""), isPlural || isApart)
    .map(toTask)
    .filter(({ title }) => title !== "")
  return { type: "add", tasks: tasks.slice(0, tasksMax) }
}

/** What announces the lines below it. */
const heading =
  /^(?:(?:all |both )?(?:of )?(?:these|those|this|them|the following|following)(?: (?:tasks?|to-?dos?|items?|things?|ones?|two|three|four))?(?: (?:to|on) (?:my|the) (?:to-?do )?list)?|(?:to|on) (?:my|the) (?:to-?do )?list)\s*[:-]?\s*\n/i

/** Marks between a title and talk that was taken off behind it. */
const onNote = /[\s,:-]+$/

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
  return isPlural
    ? text.split(/ ?, ?(?:and )?(?:then )?| and (?:another (?:one )?(?:to |for )?)?| & | plus /i)
    : [text]
}

const longestSplit = 2_500

const described =
  /(?:,? \(?(?:and )?with (?:the |a |an )?(?:description|desc|details?|notes?|comment)(?: of| that says| saying| reading)?:?|[,;.]? \(?(?:and )?(?:its |the |a )?(?:description|desc|details?|notes?)(?: is| being| should be| says|:| -)|,? described as|,? and (?:describe it as|note that|say in the description|give it the description|add the (?:description|note|details?)|set the description to)) ?:? ?/i

const titleStart =
  /^(?:(?:that |the fact that )?i(?:'ll|'ve| will)? (?:(?:really|still|also) )*(?:need|have|should|must|ought|got|gotta|am supposed)(?: got)?(?: to)? |to (?=[a-z]+ )|(?:it's|it is|called|titled|named|saying) (?="))/i

const toTask = (text: string): NewTask => {
  const body = text.trim().replace(titleStart, "")
  const found = described.exec(body.slice(0, longestSplit))
  if (!found || found.index === 0) return { title: titleOf(body) }
  const description = unquoted(
    body
      .slice(found.index + found[0].length)
      .trim()
      .replace(/\)$/, "")
  )
  return {
    title: titleOf(body.slice(0, found.index)),
    description: description === "" ? undefined : description
  }
}

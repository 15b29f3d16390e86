/**
 * Reads off words what is to be done to tasks that are there: complete, delete, change, show.
 *
 * What somebody tells ("milk bought", "I don't need the tent any more") is read
 * behind what somebody asks for, and counts less where both are said.
 */
import { readChange } from "./todo-changes.ts"
import type { Deed, Intent } from "./todo-intents.ts"
import { heardBy, rule } from "./todo-lexicon.ts"
import { readRef } from "./todo-refs.ts"
import { readShow } from "./todo-showing.ts"
import { wellSpelled } from "./todo-verbs.ts"
import { isPast, pastOnlyBase } from "./todo-words.ts"

/** Reads a deed; undefined where it is none. */
export const readDeed = (said: string): Intent | undefined => {
  const text = wellSpelled(said)
  return readChange(said) ?? readDelete(text) ?? readComplete(text) ?? readShow(text)
}

const doing = (type: "complete" | "delete", said: string | undefined, isLoose = false): Intent => {
  const deed: Deed = { type }
  return { type: "deed", deed, ref: readRef(bareOf(said ?? ""), isLoose) }
}

const told = (
  type: "complete" | "delete",
  said: string | undefined,
  isLoose = false
): Extract<Intent, { readonly type: "deed" }> => ({
  type: "deed",
  deed: { type },
  ref: readRef(bareOf(said ?? ""), isLoose),
  isTold: true
})

const onList = rule("{task} (?:from|off|off of|out of|on) <list>")
const atTime = rule("{task},? <when>")
const status = rule("(?:the )?status of {task}")

/** A task without when it was done and where it stands. */
const bareOf = (said: string): string => {
  let text = said
  for (const edge of [atTime, onList, status]) text = edge.exec(text)?.groups?.["task"] ?? text
  return text
}

const deletions = [
  rule("(?:take|get|knock|wipe|strike|pull|kick|move|throw) {task} (?:off|off of|from|out of) <list>"),
  rule('(?:take|throw|toss|chuck) (?:out|away) (?=(?:the )?<noun>|#?\\d|"){task}'),
  rule("(?:throw|clear|toss|chuck|wipe|cut|strike|take|scratch) {task} (?:out|away|off)"),
  rule("<delete>(?: off| out)?:?(?: {task})?"),
  rule(
    "{task} (?:can|could|should|may|must|needs to|has to|ought to)(?: <adverb>)* (?:go|go away|be <deleted>|be cancelled|disappear|get <deleted>)(?: <when>)*"
  ),
  rule("(?:no|not) (?!need|reason|point|longer|more ){task} (?:any ?more|any longer|please)"),
  rule(
    "(?:(?:i want|i need|i'd like|i would like|get|have) )?{task} to be <deleted>(?: (?:from|off) <list>)?"
  ),
  rule("(?:i want|i need|i'd like|i would like|have) {task} <deleted>(?: (?:from|off) <list>)?")
]

const deletionsTold = [
  rule(
    "(?:<subject> )?(?:<adverb> )*(?:don't|do not|no longer|won't|will not|needn't|need not|am no longer|shan't)(?: <adverb>)* (?:need|want|have|be needing|require|care about|plan|intend)(?: to)?(?: (?:do|keep|see|have|be reminded (?:of|about)) (?=the |my |that |this |#?\\d|\"|task))? {task}(?: (?:on <list>|on there))?(?: <when>)*"
  ),
  rule(
    "(?:there's |there is )?no (?:more |longer )?(?:need|reason|point)(?: (?:to do|to keep|in|for|of|to)) {task}(?: <when>)*"
  ),
  rule("(?:<subject> )?(?:am |are )?(?:not|no longer) (?:going to|gonna|doing|going) {task}(?: <when>)*"),
  rule(
    "(?:<subject> )?(?:<adverb> )*(?:changed my mind (?:about|on)|decided (?:not to|against)|gave up on|given up on|giving up on) {task}"
  ),
  rule(
    "{task}(?: (?:is|are|was|were|has|have))?(?:n't| not| no longer|'s not|'s no longer)(?: (?:been|be|going to be))?(?: <adverb>)* (?:<unneeded>)(?: to me| for me)?(?: <when>)*"
  ),
  rule("{task}(?:'s| <be>)(?: <adverb>)* (?:<dropped>)(?: <when>)*")
]

const negated = rule(
  "(?:don't|do not|never|please don't|not to) (?:<delete>|<finish>|<mark>|touch|do) .*|no need to (?:delete|remove|mark|tick|complete) .*"
)

const readDelete = (text: string): Intent | undefined => {
  if (asks.test(text) || negated.test(text)) return undefined
  const said = heardBy(deletions, text)
  if (said) return doing("delete", said["task"])
  const reported = heardBy(deletionsTold, text)
  if (!reported) return undefined
  const intent = told("delete", reported["task"])
  return isDoubtful(text) ? { ...intent, deed: { type: "delete", isDoubtful: true } } : intent
}

/** Who does not want or plan an errand may still have to do it, unless something has changed. */
const isDoubtful = (text: string): boolean =>
  /\b(?:not|don'?t|won'?t|shan'?t)\b(?: \w+){0,2} (?:want to|wanna|plan|intend|care|going|gonna|doing)\b/i.test(
    text
  ) && !/\b(?:any ?more|any longer|no longer|after all)\b/i.test(text)

const completions = [
  rule(
    "<mark>(?: off)? {task}(?:(?: status|'s status))?(?:,? (?:to|as|is|in|into|being|with))* (?:<done>)(?: (?:on|off) <list>)?(?: <when>)*"
  ),
  rule(
    "(?:mark|check|tick|cross|strike|scratch)(?: off| out)?(?: as)?(?: (?:done|completed?|finished))?:? {task}"
  ),
  rule("(?:tick|check|cross|mark|strike|scratch) {task} (?:off|out)(?: (?:of |on |from )?<list>)?"),
  rule("<finish>(?: off)?:?(?: {task})?"),
  rule(
    "put (?:a |an )?(?:check ?mark|tick|check|x|cross|tick mark) (?:next to|on|by|beside|against|at|in front of|for|to|behind) {task}"
  ),
  rule(
    "{task} (?:can|could|should|may|must|needs to|has to|might as well|is to)(?: <adverb>)* (?:be|get)(?: <adverb>)* (?:(?:marked|set|flagged|considered|counted|put|moved)(?: off)?(?: as| to)? )?(?:<done>)(?: (?:on|from|off) <list>)?(?: <when>)*"
  ),
  rule(
    "(?:(?:i want|i need|i'd like|i would like|get|have) )?{task} to be (?:(?:marked|set|flagged)(?: off)?(?: as| to)? )?(?:<done>)"
  ),
  rule(
    "(?:i want|i need|i'd like|i would like|have) {task} (?:marked|set|flagged)(?: off)?(?: as| to)? (?:<done>)"
  ),
  rule("(?:set|change|update|switch) (?:the )?status (?:of|for|on) {task} (?:to|as) (?:<done>)")
]

const over = "(?:<adverb> )*(?:<done>)(?:,? <when>)*"

const completionsTold = [
  rule(
    `(?:<subject>)?(?: ?<adverb>)* ?(?:done|finished|completed|through|wrapped up|taken care of|took care of|dealt with|accomplished|knocked out|got through|checked off|ticked off|crossed off|sorted out|sorted|managed|handled|got done|did|got done with)(?: with| doing| up| off)?(?::|,)?(?: {task})?`
  ),
  rule(
    "(?:<subject>)?(?: ?<adverb>)* ?(?:managed to|got around to|got round to|was able to|got to|remembered to|taken the time to) {loose}"
  ),
  rule(`(?:<subject> )?(?:<adverb> )*(?:got|get|have|had|having) {task} ${over}`),
  rule(`(?:that's|that is|so that's|and that's) {task} ${over}`),
  rule(`{task}(?:'s| <be>) ${over}`),
  rule("{task}(?:,|:| -)? (?:done|finished|completed?|check|checked|sorted|✓|✔|✅)(?:,? <when>)*"),
  rule("(?:✓|✔|✅|\\[x\\]|done with|all done with|done):? {task}")
]

const ownTold = rule(
  "(?:yes )?(?:i|we|i've|i have|we've|we have|ive)(?: have)?(?: <adverb>| went and| managed to)* {loose}"
)
const bareTold = rule("(?:<adverb> )*{loose}")
const passiveTold = rule("(?:the |my |all )?{what}(?:'s| <be>)(?: <adverb>)* {past}")

/** Past forms that tell of no errand. */
const noDeed =
  /^(?:need|want|decid|chang|add|ask|lik|lov|hop|plann?|tri|start|forg|us|delet|remov|notic|reali[sz]|wonder|mean|meant|misspell?|mistyp|thought|think|said|told you|got|had|made (?:a|an) (?:mistake|typo|error)|creat|call(?:ed)? it|nam)(?:ed|d|ot|ten)?\b/i
const asks =
  /^(?:show|list|display|view|see|give|tell|read|filter|find|search|add|any|anything|what|which|how|when|who|why|whose|where|is|are|did|have (?:i|we)|has|was|were|does|do (?:i|we|you))\b/i
const isNot = /\b(?:not|n'?t|never|yet to|un)\b.{0,20}\b(?:done|finished|completed?)\b/i

const readComplete = (text: string): Intent | undefined => {
  if (asks.test(text) || negated.test(text) || isNot.test(text)) return undefined
  const said = heardBy(completions, text)
  if (said) return doing("complete", said["task"], /^[a-z]+ing\b/i.test(said["task"] ?? ""))
  return readTold(text)
}

const readTold = (text: string): Intent | undefined => {
  const said = heardBy(completionsTold, text)
  if (said) {
    const task = said["task"] ?? said["loose"]
    const isLoose = said["loose"] !== undefined || /^[a-z]+ing\b/i.test(task ?? "")
    return told("complete", task, isLoose)
  }
  const own = ownTold.exec(text)?.groups?.["loose"]
  if (own !== undefined && isErrand(own)) return told("complete", own, true)
  const bare = bareTold.exec(text)?.groups?.["loose"] ?? ""
  if (isErrand(bare) && !pastOnlyBase.test(bare)) return told("complete", bare, true)
  const { past, what } = passiveTold.exec(text)?.groups ?? {}
  if (past !== undefined && what !== undefined && isErrand(past)) return passive(past, what)
  const elliptic = bareOf(text).split(" ")
  const last = elliptic.at(-1) ?? ""
  return elliptic.length > 1 && elliptic.length <= 8 && isErrand(last) && !pastOnlyBase.test(last)
    ? passive(last, elliptic.slice(0, -1).join(" "))
    : undefined
}

const passive = (past: string, what: string): Intent =>
  told("complete", `${bareOf(past)} ${what.replace(/^(?:the|my|all) /i, "")}`, true)

/** Whether it begins with the past of a verb that somebody may have had to do. */
const isErrand = (text: string): boolean => isPast(text.split(" ")[0] ?? "") && !noDeed.test(text)

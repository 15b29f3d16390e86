/**
 * Reads off words what only stands beside a request: reasons, what is wrong with a task, which one is spoken of.
 */
import type { Intent } from "./todo-intents.ts"
import { heardBy, rule } from "./todo-lexicon.ts"
import { isPlainRef, readRef } from "./todo-refs.ts"

const that = [
  rule(
    "(?:add|save|note|keep|put|write|record|log|include|track|jot|stick|create|make|pop|get) (?:it|that|this|them|those|these)(?: one)?(?: down| in)?(?: as (?:a |an )?(?:new )?<noun>)?(?: (?:to|on|onto|in|into) (?:<list>|there))?(?: as well| too| then)?"
  ),
  rule("(?:make|create) (?:a|an) (?:new )?<noun> (?:for|of|out of|from) (?:it|that|this)"),
  rule(
    "(?:it|that|this) (?:should|must|needs to|has to|ought to|can) (?:go|be) (?:on|in|to|added to) <list>"
  ),
  rule("(?:make|take) (?:a )?note(?: of (?:it|that|this))?"),
  rule("(?:on|onto|to) <list>(?: with (?:it|that))?")
]

const asides = [
  rule(
    "(?:(?:because|since|cause|cuz|as) )?(?:it|that|this|they)(?:'s| is| was| were| are|'re) (?:all )?(?:a |an |by |just |only |my |added by )*(?:mistake|error|duplicate|dup|dupe|test|accident|joke|mine|old|stupid|silly)(?: anyway)?"
  ),
  rule(
    "(?:(?:because|since|cause|cuz|as) )?(?:it's |it is |that's |that is |it was |they're )?(?:not|no longer|n't|isn't|wasn't) (?:<unneeded>)(?: <when>)*"
  ),
  rule(
    "(?:(?:because|since|cause|cuz|as) )?(?:it|that|they)(?:'s| is| was|'re| got| has been)? (?:been )?(?:<dropped>)(?: <when>)*"
  ),
  rule(
    "(?:(?:because|since|cause|cuz|as) )?(?:i|we) (?:don't|do not|no longer|won't) (?:need|want|care about|have to do|have time for|use) (?:it|that|this|them)(?: <when>)*"
  ),
  rule(
    "(?:i|we) (?:changed my mind|added (?:it|that) by (?:mistake|accident)|decided against it|forgot|am not going)(?: <when>)*"
  ),
  rule(
    "(?:is|would) (?:that|it|this) (?:possible|ok|okay|doable|work)|can you do (?:that|it|this)|that's it|that is it|no rush|it's urgent|so i don't forget|before i forget|or i'll forget|otherwise i'll forget"
  )
]

const flaws = [
  rule(
    "(?:oops )?(?:<subject> )?(?:<adverb> )*(?:made|had|have|got|there's|there is|found|noticed|spotted|see)(?: a| an| some)? (?:typo|mistake|error|misspelling|spelling mistake|spelling error)s? (?:in|with|on) {task}"
  ),
  rule(
    "(?:<subject> )?(?:<adverb> )*(?:got|have|had|wrote|typed|spelled|spelt|put|entered|named|called) {task} (?:<wrong>|wrongly|incorrectly)"
  ),
  rule("(?:<subject> )?(?:<adverb> )*(?:misspelled|misspelt|mistyped|misnamed|messed up|botched) {task}"),
  rule("{task}(?:'s| is| was| are|'s title is|'s name is)(?: <adverb>)* (?:<wrong>)"),
  rule(
    "{task} (?:has|contains|got) (?:a|an|the) (?:typo|mistake|error|wrong (?:title|name|text|wording)|spelling mistake)(?: in it)?"
  ),
  rule(
    "{task} (?:should|must|needs to|has to|ought to|can|could|wants to) be (?:renamed|changed|retitled|edited|updated|corrected|fixed|reworded|rephrased|modified)"
  ),
  rule(
    "{task} (?:needs|wants|requires|could use|should get) (?:a |an )?(?:new (?:title|name|wording)|renaming|changing|fixing|correcting|rewording|change|correction|fix|update|edit)"
  )
]

const topics = [
  rule("(?:for|on|in|as for|about|regarding|concerning|with|re|take|you know|remember|see|under|to) {task}"),
  rule("{task}")
]

/** Reads a reason, or "add it"; undefined where it is neither. */
export const readAside = (text: string): Intent | undefined => {
  if (that.some((each) => each.test(text))) return { type: "that" }
  return asides.some((each) => each.test(text)) ? { type: "aside" } : undefined
}

const instead = rule(
  "(?:(?:no|nope|wait|sorry|oops|actually|rather|or rather|correction|hmm|not that(?: one)?)[,.!]? )*(?:(?:i )?(?:meant?|mean)|no|wait|sorry|oops|make that|make it(?= (?:task |number |the |#?\\d))|rather|or rather|actually|correction)[,:]? {task}"
)

/** Reads which task is meant instead of the one that was named; undefined where none is. */
export const readCorrection = (text: string): Intent | undefined => {
  const task = instead.exec(text)?.groups?.["task"]
  if (task === undefined || !isPlainRef(task)) return undefined
  const ref = readRef(task)
  return ref.kind === "ids" || ref.kind === "place" || (ref.kind === "title" && shortTopic.test(task))
    ? { type: "mention", ref, isInstead: true }
    : undefined
}

/** Reads which task is spoken of where nothing is asked for; undefined where none is. */
export const readMention = (text: string): Intent | undefined => {
  const flawed = heardBy(flaws, text)?.["task"]
  if (flawed !== undefined && !/^(?:it|that|everything|all)$/i.test(flawed))
    return { type: "mention", ref: readRef(flawed) }
  const topic = heardBy(topics, text)?.["task"]
  if (
    topic === undefined ||
    !isPlainRef(topic) ||
    /\b(?:and|is|are|to|has|should|my|the list)\b/i.test(topic)
  )
    return undefined
  const ref = readRef(topic)
  return ref.kind === "ids" || ref.kind === "place" || (ref.kind === "title" && shortTopic.test(topic))
    ? { type: "mention", ref }
    : undefined
}

/** "the dentist one", "task "call mom"": no more words than that. */
const shortTopic =
  /^(?:"[^"]*"|(?:the|my|that|task|to-?do|item) (?:[^ ]+ ){1,4}(?:one|task|to-?do|item|entry|thing|reminder)|(?:the )?(?:task|item|to-?do) "[^"]*")$/i

/**
 * Reads off a sentence that somebody wants something only perhaps: once, if, unless, maybe.
 *
 * The script does nothing later by itself and cannot see whether something has
 * come true, so it asks instead of doing. What is told of the past ("I called
 * mum when I got home") and the words of a title hang on nothing.
 */
import type { Intent } from "./todo-intents.ts"
import { opening, rule } from "./todo-lexicon.ts"

/** What is wanted perhaps, and why only perhaps. */
export type Doubtful = Extract<Intent, { readonly type: "doubtful" }>

type Read = (text: string) => ReadonlyArray<Intent>

const courtesies =
  /,? ?\b(?:(?:if|when(?:ever)?|once|as soon as) (?:you|u) (?:can|could|would|don'?t mind|wouldn'?t mind|like|please|want|get (?:a|the) (?:chance|moment|minute|second)|have (?:(?:a|the|some) )?(?:chance|moment|minute|second|time)|are (?:free|ready))|if (?:it'?s |it is |that'?s |that is |at all )?(?:ok(?:ay)?|alright|fine|possible|not too much (?:trouble|bother))(?: with you)?|if i may|if i (?:remember|recall)(?: (?:it )?(?:right|correctly))?|before i forget)\b,?/gi

const joints =
  "(?:only )?(?:once|as soon as|when(?:ever)?|if|in case|unless|until|till|after|assuming|provid(?:ed|ing)|supposing|suppose|the moment|by the time|(?:the )?next time)"

const commands =
  "(?:(?:please|also|then|you can|can you|could you|just|go ahead and) )*(?:tick|check|cross|mark|complete|finish|close|delete|remove|drop|scrap|erase|discard|clear|rename|retitle|call|change|update|edit|set|add|create|put|remind)\\b"

/** "when did I …" asks. */
const inFront = new RegExp(
  `^(?:(?:and|but|so|ok|okay|then|well|please|hey|hi|hello|also|now),? )*(?<joint>${joints}) (?!(?:did|do|does|is|was|were|will|should|can|could|am|are|have|has|had)\\b).{1,200}?(?:,? then |, |; | (?=${commands}))(?=(?<rest>.+)$)`,
  "i"
)
const further = new RegExp(
  `^(?<first>.{1,400}?),? (?:and|but|then) (?<then>${joints} [^,;]{1,200}, ?${commands}.*)$`,
  "i"
)
const behind = new RegExp(`^(?<rest>.{1,400}?),?(?: but| and)? ${joints} (?<what>.+)$`, "i")

const hedgeInFront = opening(
  "(?:(?:and|but|so|ok|okay|well|hey|hi|hello|hmm+),? )*(?:maybe|perhaps|possibly),? (?:(?:you|we) (?:could|can|should|might) )?"
)
const hedgeBehind = rule("(?<rest>.+?),? (?:maybe|perhaps|possibly|or not|i'm not sure|not sure)")

/** The parts of a sentence of which some may hang on something, in their order; undefined where none does. */
export const readDoubtful = (sentence: string, read: Read): ReadonlyArray<Intent> | undefined => {
  const text = sentence
    .replace(courtesies, " ")
    .trim()
    .replace(/[.!?]+$/, "")
  const { first, then } = further.exec(text)?.groups ?? {}
  if (first !== undefined && then !== undefined) {
    const later = readDoubtful(then, read)
    if (later) return [...(readDoubtful(first, read) ?? read(first)), ...later]
  }
  const { joint = "", rest: leading } = inFront.exec(text)?.groups ?? {}
  if (leading !== undefined) return behindCondition(joint, read(leading))
  const hedged = hedgeInFront.test(text)
    ? text.replace(hedgeInFront, "")
    : hedgeBehind.exec(text)?.groups?.["rest"]
  if (hedged !== undefined) {
    const wanted = read(hedged)
    return wanted.some(isDone) ? [doubtful("doubt", wanted)] : undefined
  }
  const { rest, what } = behind.exec(text)?.groups ?? {}
  if (rest === undefined || what === undefined) return undefined
  const wanted = read(rest)
  const last = wanted.at(-1)
  if (last?.type !== "deed" || last.isTold === true || !["complete", "delete"].includes(last.deed.type))
    return undefined
  const [whole, ...others] = read(sentence)
  return [doubtful("condition", wanted, others.length === 0 ? whole : undefined)]
}

/** What stands behind a condition: done if that is how it was, asked for if it is to be. */
const behindCondition = (joint: string, wanted: ReadonlyArray<Intent>): ReadonlyArray<Intent> | undefined => {
  const changes = wanted.filter(isDone)
  if (changes.length === 0) return wanted.every(({ type }) => type === "unknown") ? undefined : wanted
  const isReport = changes.every((intent) => intent.type === "deed" && intent.isTold === true)
  return isReport && !/^(?:only )?(?:if|unless)$/i.test(joint) ? wanted : [doubtful("condition", wanted)]
}

const doubtful = (
  because: Doubtful["because"],
  intents: ReadonlyArray<Intent>,
  whole?: Intent | undefined
): Doubtful => ({ type: "doubtful", because, intents, ...(whole?.type === "deed" ? { whole } : {}) })

/** Whether an intent would change something. */
const isDone = ({ type }: Intent): boolean => type === "deed" || type === "rename" || type === "add"

/**
 * Takes a message apart into clauses; what may be the rest of a title stays with it.
 */
import { bare } from "./todo-courtesies.ts"
import type { Intent } from "./todo-intents.ts"
import { opening } from "./todo-lexicon.ts"

/** How a clause is read by itself. */
type Read = (clause: string) => Intent

const listHead =
  /:\s*$|^(?:add|create|new|here)\b.*\b(?:tasks|to-?dos|items|things|following|these)\b[^\n]*$/i

export const clausesOf = (text: string, read: Read): ReadonlyArray<string> => {
  const sentences = sentencesIn(text)
  return sentences.length === 1 && sentences[0]?.includes("\n") === true
    ? sentences
    : sentences.flatMap((sentence) => partsOf(sentence, read))
}

/** The sentences of a message; a list with its head is one. */
export const sentencesIn = (text: string): ReadonlyArray<string> => {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  const [head = "", ...rest] = lines
  return rest.length > 0 && listHead.test(head) ? [lines.join("\n")] : lines.flatMap(sentencesOf)
}

const shortened = /\b(?:dr|mr|mrs|ms|st|prof|no|nr|vs|etc|e\.g|i\.e|approx|incl)\.$/i

const sentencesOf = (line: string): ReadonlyArray<string> => {
  const sentences: Array<string> = []
  let start = 0
  for (const mark of line.matchAll(/[.!?;…]+ (?=["'#\p{L}\p{N}])/gu)) {
    const end = mark.index + mark[0].length
    const sentence = line.slice(start, end).trim()
    if (shortened.test(sentence) || isInQuotes(line, mark.index)) continue
    sentences.push(sentence.replace(/;$/, ""))
    start = end
  }
  return [...sentences, line.slice(start)].filter((sentence) => sentence.trim() !== "")
}

const isInQuotes = (line: string, at: number): boolean => (line.slice(0, at).split('"').length - 1) % 2 === 1

/** A command that nobody would take for the end of a title. */
const command =
  /^(?:(?:please|also|then|can you|could you) )*(?:add |remind me |create an? |(?:mark|complete|finish|delete|remove|check off|tick off|cross off|rename|update|change|edit|drop) (?:#|(?:the )?(?:task|todo|item|number)s? |\d|["'])|(?:mark|set) .{1,60} (?:as )?(?:done|completed?|finished)$|(?:delete|remove) the .{1,60} (?:task|todo|one|item)$|(?:show|list|give) (?:me )?(?:my|the|all|what|everything|every)\b|(?:tell|show) me |(?:what|how many|which)(?:'s|s| is| are| do)? |i(?:'ve| have)? (?:already )?(?:finished|completed|did|done) )/i
const anyCommand =
  /^(?:(?:please|also|then|can you|could you) )*(?:add|remind|create|mark|complete|finish|delete|remove|check|tick|cross|rename|update|change|edit|drop|show|list|tell|what|set|clear|put|make|scrap|erase|tick|call)\b/i

/** How somebody begins to tell why. */
const reason = opening(
  "(?:because|since|cause|cuz|as|it|that|this|they|he|she|i|we|no longer|not|no need|don't|won't|turns out|was|never mind|already|been|there|the (?:appointment|event|meeting|trip|party) (?:is|was|has))\\b"
)

const joints =
  /,? and then |,? then |,? and also |, and |,? and |, (?=then )|,? so |,? but |, | - | -- |: | because | since | \((?=.{1,60}\)$)/gi

/** Joints of one sentence at which it is tried to take it apart. */
const jointsMax = 40

/** Clauses of one message that are read; more are left, and said to be. */
export const clausesMax = 12

const partsOf = (sentence: string, read: Read): ReadonlyArray<string> => {
  const clauses: Array<string> = []
  let start = 0
  for (const joint of [...sentence.matchAll(joints)].slice(0, jointsMax)) {
    if (clauses.length > clausesMax) break
    if (joint.index < start || isInQuotes(sentence, joint.index)) continue
    const rest = sentence.slice(joint.index + joint[0].length).replace(/\)$/, "")
    const sofar = sentence.slice(start, joint.index)
    if (sofar.trim() === "" || !isJoint(joint[0].toLowerCase(), sofar, rest, read)) continue
    clauses.push(sofar)
    // A wish behind a request is why somebody asks.
    if (
      isReason(joint[0], rest) &&
      ["list", "deed"].includes(read(sofar).type) &&
      read(bare(rest)).type === "add"
    )
      return clauses
    start = joint.index + joint[0].length
  }
  return [...clauses, sentence.slice(start)]
}

const abrupt = /^,? ?$|^ --? $|because|since|but|so|\(/i

const isReason = (joint: string, rest: string): boolean => abrupt.test(joint) && reason.test(rest)

const isJoint = (joint: string, sofar: string, rest: string, read: Read): boolean => {
  const before = read(sofar)
  const next = followed(rest, read)
  if (next) return before.type !== "unknown" || next.type === "that" || next.type === "deed"
  const isAbrupt = abrupt.test(joint)
  if (joint === ": ") return before.type === "mention"
  if (before.type === "mention") return isAbrupt && read(rest).type === "deed"
  if (
    isReason(joint, rest) &&
    (before.type === "list" || (before.type === "deed" && before.deed.type !== "update"))
  )
    return true
  if (joint.includes("-") || joint.includes("(")) return false
  if (!(anyCommand.test(rest) || command.test(rest))) return false
  return before.type !== "unknown" && (before.type !== "add" || command.test(rest))
}

/** What a rest says of what was said just before it; undefined where it stands for itself. */
const followed = (rest: string, read: Read): Intent | undefined => {
  const clause = restMaxChars < rest.length ? rest.slice(0, restMaxChars) : rest
  const [first = clause] = clause.split(/[,;] | - | and /)
  for (const said of new Set([clause, first])) {
    const intent = read(said)
    if (intent.type === "that" || intent.type === "aside" || (intent.type === "mention" && intent.isInstead))
      return intent
    if (
      intent.type === "deed" &&
      intent.ref.kind === "it" &&
      (said === clause || intent.deed.type !== "update")
    )
      return intent
  }
  return undefined
}

const restMaxChars = 300

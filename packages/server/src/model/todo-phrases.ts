/**
 * Reads off plain English what is wanted: each clause of a message becomes an intent.
 *
 * What a clause begins with decides, so a title may hold any word. Longer
 * messages than a person types are read by their beginning alone, and what is
 * left of them is one title: no rule meets more than `readMaxChars` letters.
 */
import { readAdding, readWish } from "./todo-adding.ts"
import { readDeed } from "./todo-deeds.ts"
import type { Intent } from "./todo-intents.ts"
import { readListing } from "./todo-listing.ts"
import { readSmallTalk } from "./todo-small-talk.ts"
import { tidy } from "./todo-words.ts"

/** Letters up to which a message is taken apart into clauses. */
const readMaxChars = 1_500

/** Clauses of one message that are done; more are left, and said to be. */
export const clausesMax = 12

/** What a message wants, in its order; of a long list only the beginning. */
export const readMessage = (message: string): ReadonlyArray<Intent> => {
  const text = tidy(message)
  if (text === "") return [{ type: "help" }]
  if (text.length > readMaxChars) return [readLong(text)]
  const intents = clausesOf(text).map(readClause)
  const known = intents.filter(({ type }) => type !== "unknown")
  // Chatter beside a request is left alone; so is a greeting before one.
  const wanted = known.filter(({ type }) => !isCourtesy(type))
  if (wanted.length > 0) return wanted.slice(0, clausesMax + 1)
  return known.length > 0 ? known.slice(0, 1) : intents.slice(0, 1)
}

const isCourtesy = (type: Intent["type"]) => type === "hello" || type === "thanks" || type === "bye"

/** What one clause wants. */
export const readClause = (clause: string): Intent => {
  const text = bare(clause)
  const whole = withoutEnd(clause.trim())
  return (
    readSmallTalk(whole) ??
    readSmallTalk(text) ??
    readAdding(text) ??
    readDeed(text) ??
    readListing(text) ??
    readWish(text, (rest) => readDeed(rest) ?? readListing(rest)) ?? { type: "unknown", text }
  )
}

/** A message of a length that nobody reads: at most one thing to add. */
const readLong = (text: string): Intent => {
  const added = readAdding(bare(text.slice(0, 200)), text.slice(200))
  return added ?? { type: "unknown", text: `${text.slice(0, 60)}…` }
}

const opening =
  /^(?:(?:hi|hello|hey|hiya|ok|okay|so|well|umm?|uh|please|pls|plz|kindly|now|also|then|and|but|just|actually|oh|yes|yeah|great|cool|perfect|thanks|thank you|alright|right|todo ?assistant|assistant|hey there|hi there|hello there|good (?:morning|afternoon|evening)|quick(?:ly)?|by the way|btw|finally|next|lastly|wait|sorry|maybe|perhaps)\b[,!.:-]* |(?:can|could|would|will) (?:you|u)(?: please| kindly| also| just| maybe| quickly)* |(?:can|could|may) i(?: please| also)* (?=(?:see|get|have|add|view|look)\b)|(?:i would|i'd|id) (?:really )?(?:like|love) (?:you )?to |(?:i would|i'd) (?:like|love) (?=(?:a|an|the|my) )|i(?: would)? (?:want|need) you to |i(?: wanna| want to) (?=(?:add|see|delete|remove|complete|mark|rename|change|update|know|view|check|create|edit|clear|list)\b)|i(?:'m| am) going to need you to |let'?s |let me |lemme |help me (?!remember)|go ahead and |would you mind |do you mind |is it possible to |please |you can |(?:i think )?you should |i was wondering if you could |it would be (?:great|nice|good) if you (?:could )?|do me a favou?r and |be so kind as to |feel free to |time to (?=(?:add|delete|remove|complete|mark|rename)\b))/i
const ending =
  /(?:,? (?:please|pls|plz|thanks(?: a lot| so much)?|thank you(?: so much| very much)?|thx|for me|will you|would you|could you|can you|ok|okay|if you (?:can|could|would|don't mind)|right away|mate|buddy))$/i

/** Courtesies that one clause may have before or behind it. */
const courtesiesMax = 8

/** A clause without the courtesies around it. */
export const bare = (clause: string): string => {
  let text = withoutEnd(clause.trim())
  for (let count = 0; count < courtesiesMax; count++) {
    const less = text.replace(opening, "")
    if (less === text || less.trim() === "") break
    text = less.trim()
  }
  for (let count = 0; count < courtesiesMax; count++) {
    const less = withoutEnd(text.replace(ending, ""))
    if (less === text || less === "") break
    text = less
  }
  return text
}

const withoutEnd = (text: string): string => text.replace(/[\s.!?]{1,20}$/, "")

const listHead =
  /:\s*$|^(?:add|create|new|here)\b.*\b(?:tasks|to-?dos|items|things|following|these)\b[^\n]*$/i

/** A command that nobody would take for the end of a title. */
const command =
  /^(?:(?:please|also|then|can you|could you) )*(?:add |remind me |create an? |(?:mark|complete|finish|delete|remove|check off|tick off|cross off|rename|update|change|edit|drop) (?:#|(?:the )?(?:task|todo|item|number)s? |\d|["'])|(?:mark|set) .{1,60} (?:as )?(?:done|completed?|finished)$|(?:delete|remove) the .{1,60} (?:task|todo|one|item)$|(?:show|list|give) (?:me )?(?:my|the|all|what|everything|every)\b|(?:tell|show) me |(?:what|how many|which)(?:'s|s| is| are| do)? |i(?:'ve| have)? (?:already )?(?:finished|completed|did|done) )/i
const anyCommand =
  /^(?:(?:please|also|then|can you|could you) )*(?:add|remind|create|mark|complete|finish|delete|remove|check|tick|cross|rename|update|change|edit|drop|show|list|tell|what|set|clear|put|make)\b/i

/** The clauses of a message; what may be the rest of a title stays with it. */
const clausesOf = (text: string): ReadonlyArray<string> => {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  const [head = "", ...rest] = lines
  if (rest.length > 0 && listHead.test(head)) return [lines.join("\n")]
  return lines.flatMap(sentencesOf).flatMap(joinedOf)
}

const shortened = /\b(?:dr|mr|mrs|ms|st|prof|no|vs|etc|e\.g|i\.e|approx)\.$/i

const sentencesOf = (line: string): ReadonlyArray<string> => {
  const sentences: Array<string> = []
  let start = 0
  for (const mark of line.matchAll(/[.!?;]+ (?=["'#\p{L}\p{N}])/gu)) {
    const end = mark.index + mark[0].length
    const sentence = line.slice(start, end).trim()
    if (shortened.test(sentence) || isInQuotes(line, mark.index)) continue
    sentences.push(sentence.replace(/;$/, ""))
    start = end
  }
  return [...sentences, line.slice(start)].filter((sentence) => sentence.trim() !== "")
}

const isInQuotes = (line: string, at: number): boolean => (line.slice(0, at).split('"').length - 1) % 2 === 1

const joints = /,? and then |,? then |,? and also |, and |,? and |, (?=then )|, /gi

const joinedOf = (sentence: string): ReadonlyArray<string> => {
  const clauses: Array<string> = []
  let start = 0
  for (const joint of sentence.matchAll(joints)) {
    const rest = sentence.slice(joint.index + joint[0].length)
    if (clauses.length > clausesMax || !(anyCommand.test(rest) || command.test(rest))) continue
    const sofar = sentence.slice(start, joint.index)
    const isAdding = readAdding(bare(sofar)) !== undefined
    const isNew = (!isAdding || command.test(rest)) && anyKnown(sofar)
    if (!isNew || isInQuotes(sentence, joint.index)) continue
    clauses.push(sofar)
    start = joint.index + joint[0].length
  }
  return [...clauses, sentence.slice(start)]
}

const anyKnown = (clause: string): boolean => readClause(clause).type !== "unknown"

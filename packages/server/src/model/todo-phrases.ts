/**
 * Reads off plain English what is wanted: each clause of a message becomes an intent.
 *
 * A rule fits a whole clause, so a title may hold any word. Longer messages than
 * a person types are read by their beginning alone, and what is left of them is
 * one title: no rule meets more than `readMaxChars` letters.
 */
import { beginningOf, shortened } from "@tropism/domain/text-beginning"
import { readAdding, readWish } from "./todo-adding.ts"
import { readAside, readCorrection, readMention } from "./todo-asides.ts"
import { clausesMax, clausesOf, sentencesIn } from "./todo-clauses.ts"
import { readDoubtful } from "./todo-conditions.ts"
import { bare, withoutEnd } from "./todo-courtesies.ts"
import { readDeed } from "./todo-deeds.ts"
import type { Intent } from "./todo-intents.ts"
import { readListing } from "./todo-listing.ts"
import { masked } from "./todo-quotes.ts"
import { readSmallTalk } from "./todo-small-talk.ts"
import { woven } from "./todo-weaving.ts"
import { tidy, titleOf } from "./todo-words.ts"

/** Letters up to which a message is taken apart into clauses. */
const readMaxChars = 1_500

/** What a message wants, in its order; of a long list only the beginning. */
export const readMessage = (message: string): ReadonlyArray<Intent> => {
  const said = tidy(message)
  if (said === "") return [{ type: "help" }]
  if (said.length > readMaxChars) return [readLong(said)]
  const { text, unmask } = masked(said)
  const read = rememberedBy(readClause)
  const intents = withDoubts(text, (part) => withMore(woven(clausesOf(part, read).map(read))))
  const known = intents.filter(({ type }) => type !== "unknown" && type !== "aside")
  // Chatter beside a request is left alone; so is a greeting before one.
  const wanted = known.filter(({ type }) => !isCourtesy(type))
  const heard =
    wanted.length > 0
      ? wanted.slice(0, clausesMax + 1)
      : known.length > 0
        ? known.slice(0, 1)
        : intents.slice(0, 1).map((intent) => (intent.type === "aside" ? unknown(text) : intent))
  return unmask(heard)
}

/** Reads a message, and by themselves the sentences in which something is wanted only perhaps. */
const withDoubts = (text: string, read: (part: string) => ReadonlyArray<Intent>): ReadonlyArray<Intent> => {
  const sentences = sentencesIn(text).map((sentence) => ({
    sentence,
    doubtful: readDoubtful(sentence, read)
  }))
  if (sentences.every(({ doubtful }) => doubtful === undefined)) return read(text)
  const intents: Array<Intent> = []
  let plain: Array<string> = []
  const readPlain = () => {
    if (plain.length > 0) intents.push(...read(plain.join("\n")))
    plain = []
  }
  for (const { doubtful, sentence } of sentences) {
    if (doubtful === undefined) plain.push(sentence)
    else {
      readPlain()
      intents.push(...doubtful)
    }
  }
  readPlain()
  return intents
}

const unknown = (text: string): Intent => ({ type: "unknown", text })

/** What follows something to add, and is nothing by itself, may be more to add: it is asked for and not left out. */
const withMore = (intents: ReadonlyArray<Intent>): ReadonlyArray<Intent> => {
  const from = intents.findIndex(({ type }) => type === "add")
  const titles = intents.flatMap((intent, index) =>
    from >= 0 && index > from && intent.type === "unknown" ? [titleOf(intent.text)] : []
  )
  return titles.length > 0 ? [...intents, { type: "more", titles }] : intents
}

const rememberedBy = (read: (clause: string) => Intent): ((clause: string) => Intent) => {
  const known = new Map<string, Intent>()
  return (clause) => {
    const intent = known.get(clause) ?? read(clause)
    known.set(clause, intent)
    return intent
  }
}

const isCourtesy = (type: Intent["type"]) => type === "hello" || type === "thanks" || type === "bye"

/** What one clause wants. */
const readClause = (clause: string): Intent => {
  const text = bare(clause)
  const whole = withoutEnd(clause.trim())
  return asked(
    clause,
    readCorrection(whole) ??
      readAside(text) ??
      readSmallTalk(whole) ??
      readSmallTalk(text) ??
      readAdding(text) ??
      readWish(text, (rest) => readDeed(rest) ?? readListing(rest)) ??
      readTopic(text) ??
      readDeed(text) ??
      readListing(text) ??
      unknown(text)
  )
}

/** "Milk bought?" tells nothing: whoever asks wants to see. */
const asked = (clause: string, intent: Intent): Intent =>
  intent.type === "deed" && intent.isTold === true && /\?[\s!?]*$/.test(clause)
    ? { type: "deed", deed: { type: "show" }, ref: intent.ref }
    : intent

const readTopic = (text: string): Intent | undefined => {
  const topic = readMention(text)
  return topic?.type === "mention" && topic.ref.kind === "title" ? (readListing(text) ?? topic) : topic
}

/** A message of a length that nobody reads: at most one thing to add. */
const readLong = (text: string): Intent => {
  const head = beginningOf(text, 200)
  const added = readAdding(bare(head), text.slice(head.length))
  return added ?? unknown(shortened(text, 60))
}

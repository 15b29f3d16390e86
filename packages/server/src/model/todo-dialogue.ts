/**
 * Carries a conversation on: what was asked is answered first, then what else is wanted is done.
 */
import { act, doIntent, type Doing, type Reply } from "./todo-doing.ts"
import type { Dialogue, Intent, Listed, Named, Question, TaskRef } from "./todo-intents.ts"
import { findTasks } from "./todo-matching.ts"
import { bare, clausesMax, readMessage } from "./todo-phrases.ts"
import { readRef } from "./todo-refs.ts"
import { choiceOf, sentences } from "./todo-replies.ts"
import { tidy, titleOf } from "./todo-words.ts"

/** Answers messages that nobody has answered yet, in their order. */
export function* converse(messages: ReadonlyArray<string>, before: Dialogue): Doing<Reply> {
  const texts: Array<string> = []
  let dialogue = before
  for (const message of messages) {
    const reply = yield* respond(message, dialogue)
    texts.push(reply.text)
    dialogue = reply.dialogue
  }
  return { text: texts.join("\n\n"), dialogue }
}

function* respond(message: string, before: Dialogue): Doing<Reply> {
  const intents = readMessage(message)
  const { question } = before
  if (question) {
    const reply = yield* answerTo(question, message, intents, before)
    if (reply) return reply
  }
  const texts: Array<string> = []
  let dialogue: Dialogue = { ...before, question: null }
  for (const intent of intents.slice(0, clausesMax)) {
    const reply = yield* doIntent(intent, dialogue)
    texts.push(reply.text)
    // A question stays open until the next message, whatever else this one asks for.
    dialogue = { ...reply.dialogue, question: reply.dialogue.question ?? dialogue.question }
  }
  if (intents.length > clausesMax)
    texts.push(`I stopped after ${clausesMax} requests: tell me the rest in another message.`)
  return { text: texts.join("\n\n"), dialogue }
}

/** Answers the open question; undefined where the message speaks of something else. */
function* answerTo(
  question: Question,
  message: string,
  intents: ReadonlyArray<Intent>,
  before: Dialogue
): Doing<Reply | undefined> {
  const open: Dialogue = { ...before, question: null }
  const text = bare(tidy(message))
  const type = intents[0]?.type
  if (type === "no") return { text: sentences.no, dialogue: open }
  const isYes = type === "yes"
  switch (question.kind) {
    case "which":
      return yield* choose(question, text, intents, open)
    case "sure":
      return isYes ? yield* act(question.deed, question.tasks, open) : undefined
    case "add":
      return isYes ? yield* doIntent({ type: "add", tasks: [question.task] }, open) : undefined
    case "list":
      return isYes
        ? yield* doIntent({ type: "list", status: "all", about: null, isCount: false }, open)
        : undefined
    case "title":
      return type === "unknown" || type === "deed"
        ? yield* doIntent({ type: "add", tasks: [{ title: titleOf(text) }] }, open)
        : undefined
    case "words": {
      const words =
        question.field === "title"
          ? titleOf(text.replace(/^(?:to|call it|name it|make it|it should be) /i, ""))
          : text
      return yield* act({ type: "update", [question.field]: words }, [{ id: question.id, title: "" }], open)
    }
    case "what":
      return type === "unknown"
        ? yield* doIntent({ type: "deed", deed: question.deed, ref: readRef(text) }, open)
        : undefined
  }
}

type Which = Extract<Question, { readonly kind: "which" }>

function* choose(
  question: Which,
  text: string,
  intents: ReadonlyArray<Intent>,
  open: Dialogue
): Doing<Reply | undefined> {
  const { among, deed } = question
  const [intent, ...others] = intents
  if (intent?.type === "yes" && among.length === 1) return yield* act(deed, among, open)
  const isSame = intent?.type === "deed" && others.length === 0 && intent.deed.type === deed.type
  const ref = isSame ? intent.ref : readRef(text.replace(meaning, ""))
  const chosen = chosenBy(ref, among)
  const isElse = intent !== undefined && intent.type !== "unknown" && intent.type !== "yes" && !isSame
  if (chosen.length > 0 && !isElse) return yield* act(deed, chosen, open)
  if (isElse || isSame) return undefined
  return {
    text: `That is none of these, or more than one. Which one do you mean?\n${choiceOf(among)}`,
    dialogue: { ...open, question }
  }
}

const meaning =
  /^(?:i mean|i meant|it's|it is|that's|that would be|make it|the one (?:about|with|for|called|named|to)|with|(?:just |only )?(?=the |#|\d|number |both|all))/i

const chosenBy = (ref: TaskRef, among: ReadonlyArray<Named>): ReadonlyArray<Named> => {
  switch (ref.kind) {
    case "ids": {
      const chosen = among.filter(({ id }) => ref.ids.includes(id))
      return chosen.length === ref.ids.length ? chosen : []
    }
    case "place": {
      const placed = among.at(ref.place < 0 ? ref.place : ref.place - 1)
      return placed ? [placed] : []
    }
    case "all":
      return among
    case "it":
      return among
    case "title": {
      const listed = among.map((task): Listed => ({ ...task, description: null, completed: false }))
      const { meant } = findTasks(listed, ref.text)
      return meant.length === 1 ? meant : []
    }
    case "none":
      return []
  }
}

/**
 * Carries a conversation on: what was asked is answered first, then what else is wanted is done.
 */
import { act } from "./todo-acting.ts"
import { placed } from "./todo-choosing.ts"
import { doIntent } from "./todo-doing.ts"
import type { Doing, Reply } from "./todo-steps.ts"
import type { Dialogue, Intent, Listed, Named, Question, TaskRef } from "./todo-intents.ts"
import { findTasks } from "./todo-matching.ts"
import { clausesMax } from "./todo-clauses.ts"
import { bare } from "./todo-courtesies.ts"
import { readMessage } from "./todo-phrases.ts"
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
  return yield* doEach(intents, { ...before, question: null })
}

/** Does what is wanted in its order. */
function* doEach(intents: ReadonlyArray<Intent>, before: Dialogue): Doing<Reply> {
  const texts: Array<string> = []
  let dialogue = before
  for (const intent of intents.slice(0, clausesMax)) {
    const reply = yield* doIntent(intent, dialogue)
    texts.push(reply.text)
    const asked = reply.dialogue.question
    // A question stays open until the next message, whatever else this one asks for; nor is it known what "it" is.
    dialogue = {
      ...reply.dialogue,
      question: asked ?? dialogue.question,
      focus: asked ? [] : reply.dialogue.focus
    }
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
    case "now":
      return isYes ? yield* doEach(question.intents, open) : undefined
    case "add":
      return isYes ? yield* doIntent({ type: "add", tasks: question.tasks }, open) : undefined
    case "list":
      return isYes
        ? yield* doIntent({ type: "list", status: "all", about: null, isCount: false }, open)
        : undefined
    case "title":
      return isTitle(message, intents)
        ? yield* doIntent({ type: "add", tasks: [{ title: titleOf(text) }] }, open)
        : undefined
    case "words": {
      if (!answering.test(text) && !isTitle(message, intents)) return undefined
      const words = question.field === "title" ? titleOf(text.replace(answering, "")) : text
      return yield* act({ type: "update", [question.field]: words }, [{ id: question.id, title: "" }], open)
    }
    case "what":
      return isBare(type)
        ? yield* doIntent({ type: "deed", deed: question.deed, ref: readRef(text) }, open)
        : undefined
  }
}

/** Whether a message asks for nothing by itself, and so may be an answer. */
const isBare = (type: Intent["type"] | undefined): boolean =>
  type === "unknown" || type === "mention" || type === "aside"

const answering = /^(?:to|call it|name it|make it|it should be) /i

/** Whether a message is what was asked for; one that is a whole request by itself is that request. */
const isTitle = (message: string, intents: ReadonlyArray<Intent>): boolean => {
  if (/^(["'])[^"]+\1$/.test(tidy(message))) return true
  const [intent, ...others] = intents
  if (intent === undefined || others.length > 0) return false
  if (intent.type === "beyond") return !message.trim().endsWith("?")
  if (intent.type !== "deed") return isBare(intent.type)
  return intent.isTold === true || (intent.ref.kind === "title" && !commanding.test(bare(tidy(message))))
}

/** Verbs that nobody begins a title with. */
const commanding = /^(?:delete|remove|complete|mark|tick|rename)\b/i

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
  const isElse = intent !== undefined && !isBare(intent.type) && intent.type !== "yes" && !isSame
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
    case "place":
      return placed(among, ref.places) ?? []
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

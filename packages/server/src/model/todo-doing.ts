/**
 * Does what is wanted, step by step: which tools to call next, and what to say when they have answered.
 *
 * What is wanted of tasks that are there goes on in `todo-choosing.ts`, which
 * finds those that are meant. What no tool has told is never said.
 */
import { deal, rename } from "./todo-choosing.ts"
import type { Doubtful } from "./todo-conditions.ts"
import type { Dialogue, Intent, Listed, NewTask } from "./todo-intents.ts"
import { findTasks } from "./todo-matching.ts"
import { readRef } from "./todo-refs.ts"
import * as say from "./todo-replies.ts"
import { readTold } from "./todo-results.ts"
import { asking, type Call, type Doing, listed, type Reply } from "./todo-steps.ts"

/** Does one intent and says what came of it. */
export function* doIntent(intent: Intent, before: Dialogue): Doing<Reply> {
  const open = { ...before, question: null }
  switch (intent.type) {
    case "add":
      return yield* add(intent.tasks, open)
    case "list":
      return yield* list(intent, open)
    case "deed":
      return yield* deal(intent.deed, intent.ref, open)
    case "rename":
      return yield* rename(intent.readings, open)
    case "help":
      return { text: `${say.honestly} ${say.abilities}`, dialogue: open }
    case "who":
      return {
        text: `No person and no language model answers here. ${say.honestly} ${say.abilities}`,
        dialogue: open
      }
    case "beyond":
      return { text: say.outOfRange(intent.what), dialogue: open }
    case "mention":
      return { text: say.whatToDo, dialogue: open }
    case "that":
    case "aside":
      return asking(say.sentences.addWhat, { kind: "title" }, open)
    case "unknown":
      if (["ids", "place", "it"].includes(readRef(intent.text).kind))
        return { text: say.whatToDo, dialogue: open }
      return asking(
        say.notUnderstood(intent.text),
        { kind: "add", tasks: [{ title: capital(intent.text) }] },
        open
      )
    case "doubtful":
      return yield* doubt(intent, open)
    case "more":
      return asking(
        say.addMore(intent.titles),
        { kind: "add", tasks: intent.titles.map((title) => ({ title })) },
        open
      )
    default:
      return { text: say.sentences[intent.type], dialogue: open }
  }
}

/** Asks before it does what is wanted only perhaps; a title that holds the words of a condition hangs on nothing. */
function* doubt({ because, intents, whole }: Doubtful, dialogue: Dialogue): Doing<Reply> {
  if (whole?.ref.kind === "title") {
    const tasks = yield* listed("all")
    if (!("error" in tasks) && findTasks(tasks, whole.ref.text, whole.ref.isLoose).isWhole)
      return yield* deal(whole.deed, whole.ref, dialogue)
  }
  return asking(say.doubtful[because], { kind: "now", intents }, dialogue)
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

function* add(tasks: ReadonlyArray<NewTask>, dialogue: Dialogue): Doing<Reply> {
  if (tasks.length === 0) return asking(say.sentences.addWhat, { kind: "title" }, dialogue)
  const outcomes = yield tasks.map(({ description, title }): Call => ({
    tool: "add_task",
    arguments: { title, ...(description === undefined ? {} : { description }) }
  }))
  const told = outcomes.map(readTold)
  const made = told.flatMap((each) => ("task" in each ? [each.task] : []))
  const texts = told.flatMap((each) =>
    "task" in each ? [] : [say.failure(each.error, "add that task", null)]
  )
  if (made.length > 0) texts.unshift(`Done: I added ${say.namesOf(made)}.${hintOf(tasks)}`)
  return { text: texts.join(" "), dialogue: made.length > 0 ? { ...dialogue, focus: made } : dialogue }
}

/** A title that may have been meant as several tasks. */
const hintOf = ([task, ...others]: ReadonlyArray<NewTask>): string =>
  others.length === 0 && task && /,.+(?:,| and )/.test(task.title)
    ? ` It is one task; for one each, say “add tasks: ${task.title.toLowerCase()}”.`
    : ""

type ListIntent = Extract<Intent, { readonly type: "list" }>

function* list({ about, isCount, status }: ListIntent, dialogue: Dialogue): Doing<Reply> {
  const tasks = yield* listed(status)
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  const found = about === null ? tasks : matching(tasks, about)
  const next = {
    ...dialogue,
    shown: found.slice(-say.listedMax),
    focus: found.length === 1 ? found : dialogue.focus
  }
  if (found.length === 0)
    return about === null || tasks.length === 0
      ? { text: say.emptyList[status], dialogue: next }
      : asking(say.notFoundByTitle(about), { kind: "list" }, next)
  const pending = found.filter(({ completed }) => !completed).length
  const split =
    status === "all" && about === null ? ` (${pending} pending, ${found.length - pending} completed)` : ""
  const head = `You have ${say.counted(found.length, status)}${about === null ? "" : ` about “${about}”`}${split}`
  return {
    text: isCount && found.length > 20 ? `${head}.` : `${head}:\n${say.listOf(found)}`,
    dialogue: next
  }
}

const matching = (tasks: ReadonlyArray<Listed>, about: string): ReadonlyArray<Listed> =>
  tasks.filter((task) => {
    const { isAlmost, meant } = findTasks([task], about, true)
    return (
      meant.length > 0 ||
      isAlmost === true ||
      (task.description ?? "").toLowerCase().includes(about.toLowerCase())
    )
  })

/**
 * Does what is wanted, step by step: which tools to call next, and what to say when they have answered.
 *
 * Each doing is a generator that yields calls and is given their outcomes, so the
 * same words and outcomes always come to the same point. A call that failed is
 * told and never made again; what no tool has told is never said.
 */
import type {
  Deed,
  Dialogue,
  Intent,
  Listed,
  ListStatus,
  Named,
  NewTask,
  Question,
  TaskRef
} from "./todo-intents.ts"
import { findTasks } from "./todo-matching.ts"
import * as say from "./todo-replies.ts"
import { readRef } from "./todo-refs.ts"
import { failed, readListed, readTold, type Told } from "./todo-results.ts"

export interface Call {
  readonly tool: string
  readonly arguments: Readonly<Record<string, string | number>>
}

export interface Outcome {
  readonly result: unknown
  readonly isError: boolean
}

export interface Reply {
  readonly text: string
  readonly dialogue: Dialogue
}

export type Doing<A> = Generator<ReadonlyArray<Call>, A, ReadonlyArray<Outcome>>

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
    case "unknown":
      if (["ids", "place", "it"].includes(readRef(intent.text).kind))
        return { text: say.whatToDo, dialogue: open }
      return asking(
        say.notUnderstood(intent.text),
        { kind: "add", task: { title: capital(intent.text) } },
        open
      )
    default:
      return { text: say.sentences[intent.type], dialogue: open }
  }
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const asking = (text: string, question: Question, dialogue: Dialogue): Reply => ({
  text,
  dialogue: { ...dialogue, question }
})

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

function* listed(status: ListStatus): Doing<ReadonlyArray<Listed> | { readonly error: string }> {
  const [outcome] = yield [{ tool: "list_tasks", arguments: { status } }]
  return readListed(outcome)
}

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
    const { meant } = findTasks([task], about)
    return meant.length > 0 || (task.description ?? "").toLowerCase().includes(about.toLowerCase())
  })

/** Does something to the tasks that are meant, or asks which they are. */
function* deal(deed: Deed, ref: TaskRef, dialogue: Dialogue): Doing<Reply> {
  if (deed.type === "show" && ref.kind === "ids") return yield* showIds(ref.ids, dialogue)
  if (ref.kind === "ids")
    return yield* act(
      deed,
      ref.ids.map((id) => ({ id, title: "" })),
      dialogue
    )
  if (ref.kind === "it" && dialogue.focus.length > 0) return yield* act(deed, dialogue.focus, dialogue)
  if (ref.kind === "none" || ref.kind === "it")
    return asking(
      `Which task do you want to ${say.verbOf(deed)}? Tell me its number or its title.`,
      { kind: "what", deed },
      dialogue
    )
  if (ref.kind === "place" && dialogue.shown.length > 0) {
    const placed = dialogue.shown.at(ref.place < 0 ? ref.place : ref.place - 1)
    if (placed) return yield* act(deed, [placed], dialogue)
  }
  const status =
    deed.type === "complete" && ref.kind !== "title" ? "pending" : ref.kind === "all" ? ref.status : "all"
  const tasks = yield* listed(status)
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  if (ref.kind === "all") return yield* dealAll(deed, tasks, status, dialogue)
  if (ref.kind === "place") {
    const placed = tasks.at(ref.place < 0 ? ref.place : ref.place - 1)
    if (placed) return yield* act(deed, [placed], dialogue)
    const text = `There is no such place on your list: you have ${say.counted(tasks.length, status)}. Would you like to see your current tasks?`
    return asking(text, { kind: "list" }, dialogue)
  }
  return yield* dealTitle(deed, ref, tasks, dialogue)
}

type TitleRef = Extract<TaskRef, { readonly kind: "title" }>

function* dealTitle(
  deed: Deed,
  ref: TitleRef,
  tasks: ReadonlyArray<Listed>,
  dialogue: Dialogue
): Doing<Reply> {
  const { meant, near } = found(deed, tasks, ref)
  const [only, ...others] = meant
  if (only && others.length === 0)
    return deed.type === "show" ? shown([only.id], tasks, dialogue) : yield* act(deed, [only], dialogue)
  if (only) return which(`I found several tasks that match “${ref.text}”`, deed, meant, dialogue)
  const each = ref.text
    .split(/ ?, ?(?:and )?| and | & /i)
    .map((text) => found(deed, tasks, { ...ref, text }).meant)
  const single = each.flatMap(([one, ...more]) => (one && more.length === 0 ? [one] : []))
  if (each.length > 1 && single.length === each.length) return yield* act(deed, single, dialogue)
  if (near.length > 0)
    return which(`I couldn't find a task that is called “${ref.text}”`, deed, near, dialogue)
  return asking(say.notFoundByTitle(ref.text), { kind: "list" }, dialogue)
}

/** What a title means for a deed: to complete, a task that is still pending before one that is not. */
const found = (deed: Deed, tasks: ReadonlyArray<Listed>, { isLoose, text }: TitleRef) => {
  const all = findTasks(tasks, text, isLoose)
  if (deed.type !== "complete") return all
  const pending = all.meant.filter(({ completed }) => !completed)
  return pending.length > 0 ? { ...all, meant: pending } : all
}

/** Choices that one question names. */
const choicesMax = 20

const which = (why: string, deed: Deed, among: ReadonlyArray<Named>, dialogue: Dialogue): Reply => {
  const choices = among.slice(0, choicesMax)
  const text =
    choices.length === 1
      ? `${why}. Do you mean ${say.namesOf(choices)}?`
      : `${why}. Which one do you want to ${say.verbOf(deed)}?\n${say.choiceOf(choices)}`
  return asking(text, { kind: "which", deed, among: choices }, { ...dialogue, shown: choices })
}

/** Asks before it deletes many: what is completed is still there, what is deleted is not. */
function* dealAll(
  deed: Deed,
  tasks: ReadonlyArray<Listed>,
  status: ListStatus,
  dialogue: Dialogue
): Doing<Reply> {
  if (tasks.length === 0) return { text: say.emptyList[status], dialogue }
  if (deed.type === "update" || deed.type === "show")
    return which("That is more than one task", deed, tasks, dialogue)
  if (deed.type === "complete") return yield* act(deed, tasks, dialogue)
  const most = tasks.slice(0, allMax)
  const text = `That would ${say.verbOf(deed)} ${say.counted(most.length, status)}, and I can't undo it:\n${say.choiceOf(most)}\nShall I do it?`
  return asking(text, { kind: "sure", deed, tasks: most }, { ...dialogue, shown: most })
}

/** Tasks that one message may change. */
const allMax = 50

function* showIds(ids: ReadonlyArray<number>, dialogue: Dialogue): Doing<Reply> {
  const tasks = yield* listed("all")
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  return shown(ids, tasks, dialogue)
}

const shown = (ids: ReadonlyArray<number>, tasks: ReadonlyArray<Listed>, dialogue: Dialogue): Reply => {
  const seen = tasks.filter(({ id }) => ids.includes(id))
  const missing = ids.filter((id) => !seen.some((task) => task.id === id))
  const texts = [...seen.map(say.taskOf), ...missing.map(say.notFoundById)]
  const question: Question | null = missing.length > 0 ? { kind: "list" } : null
  return {
    text: texts.join("\n"),
    dialogue: { ...dialogue, question, focus: seen.length > 0 ? seen : dialogue.focus }
  }
}

/** Does it to tasks that are known by their numbers. */
export function* act(deed: Deed, tasks: ReadonlyArray<Named>, dialogue: Dialogue): Doing<Reply> {
  const chosen = tasks.slice(0, allMax)
  if (deed.type === "show")
    return yield* showIds(
      chosen.map(({ id }) => id),
      dialogue
    )
  if (deed.type === "update") {
    const missing = deed.title === "" ? "title" : deed.description === "" ? "description" : undefined
    const [task] = chosen
    if (missing && task) {
      const name = task.title === "" ? `task #${task.id}` : say.nameOf(task)
      return asking(
        `What shall the new ${missing} of ${name} be?`,
        { kind: "words", id: task.id, field: missing },
        dialogue
      )
    }
  }
  const outcomes = yield chosen.map(({ id }) => callOf(deed, id))
  const told = outcomes.map(readTold)
  const done = told.flatMap((each) => ("task" in each ? [each.task] : []))
  const texts = told.flatMap((each, index) =>
    "task" in each
      ? []
      : [say.failure(each.error, `${say.verbOf(deed)} that task`, chosen[index]?.id ?? null)]
  )
  if (done.length > 0) texts.unshift(doneText(deed, done))
  const isMissing = told.some((each) => failed(each) && /not found/i.test(each.error))
  const question: Question | null = isMissing ? { kind: "list" } : null
  const focus = deed.type === "delete" ? [] : done
  return {
    text: texts.join(" "),
    dialogue: { ...dialogue, question, focus: done.length > 0 ? focus : dialogue.focus }
  }
}

const callOf = (deed: Exclude<Deed, { readonly type: "show" }>, id: number): Call => {
  if (deed.type !== "update") return { tool: `${deed.type}_task`, arguments: { task_id: id } }
  const { description, title } = deed
  return {
    tool: "update_task",
    arguments: {
      task_id: id,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description })
    }
  }
}

const doneText = (deed: Deed, tasks: ReadonlyArray<Told>): string => {
  if (deed.type === "complete") return `Well done! I marked ${say.namesOf(tasks)} as done.`
  if (deed.type === "delete") return `I deleted ${say.namesOf(tasks)}.`
  if (deed.type === "update" && deed.title === undefined)
    return `I changed the description of ${say.namesOf(tasks)}.`
  return `Done: ${say.inOneSentence(tasks.map(({ id }) => `#${id}`))} is now called “${tasks[0]?.title ?? ""}”.`
}

type Reading = Extract<Intent, { readonly type: "rename" }>["readings"][number]

/** A change of title by title: the list tells which of its readings names a task. */
function* rename(readings: ReadonlyArray<Reading>, dialogue: Dialogue): Doing<Reply> {
  const tasks = yield* listed("all")
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  const fits = readings.flatMap(({ ref, title }) => {
    return ref.kind === "title"
      ? [{ deed: { type: "update", title } as const, ref, ...findTasks(tasks, ref.text) }]
      : []
  })
  const fit =
    fits.find(({ isWhole }) => isWhole) ??
    fits.find(({ meant }) => meant.length === 1) ??
    fits.find(({ meant, near }) => meant.length + near.length > 0) ??
    fits[0]
  if (!fit) return { text: say.sentences.yes, dialogue }
  return yield* dealTitle(fit.deed, fit.ref, tasks, dialogue)
}

/**
 * Does something to tasks that are known by their numbers, and says what came of it.
 *
 * A call that failed is told and never made again.
 */
import type { Deed, Dialogue, Listed, Named, Question } from "./todo-intents.ts"
import * as say from "./todo-replies.ts"
import { failed, readTold, type Told } from "./todo-results.ts"
import { asking, type Call, type Doing, listed, type Reply } from "./todo-steps.ts"

/** Does it to tasks that are known by their numbers. */
export function* act(deed: Deed, tasks: ReadonlyArray<Named>, dialogue: Dialogue): Doing<Reply> {
  const chosen = tasks.slice(0, allMax)
  if (deed.type === "show")
    return yield* showIds(
      chosen.map(({ id }) => id),
      dialogue
    )
  if (deed.type === "delete" && deed.isDoubtful === true)
    return asking(
      `Shall I delete ${say.inOneSentence(chosen.map(named))}? I can't undo it.`,
      { kind: "sure", deed: undoubted(deed), tasks: chosen },
      { ...dialogue, focus: chosen }
    )
  if (deed.type === "update") {
    const missing = deed.title === "" ? "title" : deed.description === "" ? "description" : undefined
    const [task] = chosen
    if (missing && task) {
      return asking(
        `What shall the new ${missing} of ${named(task)} be?`,
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

const named = (task: Named): string => (task.title === "" ? `task #${task.id}` : say.nameOf(task))

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

/** Shows tasks by their numbers. */
export function* showIds(ids: ReadonlyArray<number>, dialogue: Dialogue): Doing<Reply> {
  const tasks = yield* listed("all")
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  return shown(ids, tasks, dialogue)
}

/** The tasks of these numbers, as a list that was told has them. */
export const shown = (
  ids: ReadonlyArray<number>,
  tasks: ReadonlyArray<Listed>,
  dialogue: Dialogue
): Reply => {
  const seen = tasks.filter(({ id }) => ids.includes(id))
  const missing = ids.filter((id) => !seen.some((task) => task.id === id))
  const texts = [...seen.map(say.taskOf), ...missing.map(say.notFoundById)]
  const question: Question | null = missing.length > 0 ? { kind: "list" } : null
  return {
    text: texts.join("\n"),
    dialogue: { ...dialogue, question, focus: seen.length > 0 ? seen : dialogue.focus }
  }
}

/** What somebody has chosen, or said yes to, is in doubt no more. */
export const undoubted = (deed: Deed): Deed => (deed.type === "delete" ? { type: "delete" } : deed)

/** Tasks that one message may change. */
export const allMax = 50

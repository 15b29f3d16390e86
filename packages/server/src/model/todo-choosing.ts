/**
 * Finds the tasks that somebody means, by place, by title or all of them, and asks where that is in doubt.
 *
 * What is done to them then is `todo-acting.ts`. All of them are never deleted
 * or completed unasked.
 */
import { act, allMax, showIds, shown, undoubted } from "./todo-acting.ts"
import type { Deed, Dialogue, Intent, Listed, ListStatus, Named, TaskRef } from "./todo-intents.ts"
import { findTasks } from "./todo-matching.ts"
import * as say from "./todo-replies.ts"
import { asking, type Doing, listed, type Reply } from "./todo-steps.ts"

/** Does something to the tasks that are meant, or asks which they are. */
export function* deal(deed: Deed, ref: TaskRef, dialogue: Dialogue): Doing<Reply> {
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
  if (ref.kind === "place") {
    const seen = placed(dialogue.shown, ref.places)
    if (seen) return yield* act(deed, seen, dialogue)
  }
  const status = ref.kind !== "all" ? "all" : deed.type === "complete" ? "pending" : ref.status
  const tasks = yield* listed(status)
  if ("error" in tasks) return { text: say.failure(tasks.error, "look at your list", null), dialogue }
  if (ref.kind === "all") return yield* dealAll(deed, tasks, status, dialogue)
  if (ref.kind === "place") {
    const pending = tasks.filter(({ completed }) => !completed)
    const seen = placed(tasks, ref.places)
    const open =
      deed.type === "complete" && seen?.some(({ completed }) => completed)
        ? placed(pending, ref.places)
        : seen
    if (open) return yield* act(deed, open, dialogue)
    const text = `There is no such place on your list: you have ${say.counted(tasks.length, status)}. Would you like to see your current tasks?`
    return asking(text, { kind: "list" }, dialogue)
  }
  return yield* dealTitle(deed, ref, tasks, dialogue)
}

type Reading = Extract<Intent, { readonly type: "rename" }>["readings"][number]

/** A change of title by title: the list tells which of its readings names a task. */
export function* rename(readings: ReadonlyArray<Reading>, dialogue: Dialogue): Doing<Reply> {
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

/** Those at the places that somebody names; undefined where one of the places is not there. */
export const placed = <A>(
  tasks: ReadonlyArray<A>,
  places: ReadonlyArray<number>
): ReadonlyArray<A> | undefined => {
  const found = places.flatMap((place) => tasks.at(place < 0 ? place : place - 1) ?? [])
  return found.length === places.length && found.length > 0 ? found : undefined
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
  const [almost, ...more] = near
  if (deed.type === "show" && almost && more.length === 0) return shown([almost.id], tasks, dialogue)
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
  return asking(
    text,
    { kind: "which", deed: undoubted(deed), among: choices },
    { ...dialogue, shown: choices }
  )
}

/** Asks before it deletes or completes many: neither can be undone. */
function* dealAll(
  deed: Deed,
  tasks: ReadonlyArray<Listed>,
  status: ListStatus,
  dialogue: Dialogue
): Doing<Reply> {
  if (tasks.length === 0) return { text: say.emptyList[status], dialogue }
  if (deed.type === "update" || deed.type === "show")
    return which("That is more than one task", deed, tasks, dialogue)
  const most = tasks.slice(0, allMax)
  const text = `That would ${say.verbOf(deed)} ${say.counted(most.length, status)}, and I can't undo it:\n${say.choiceOf(most)}\nShall I do it?`
  return asking(text, { kind: "sure", deed: undoubted(deed), tasks: most }, { ...dialogue, shown: most })
}

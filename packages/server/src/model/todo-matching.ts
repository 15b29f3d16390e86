/**
 * Finds in a list of tasks the ones that words may mean.
 *
 * A title said whole is meant before any that only holds the words. What holds
 * some of the words alone is never taken, only offered.
 */
import type { Listed } from "./todo-intents.ts"
import { isAlike, stemsOf } from "./todo-words.ts"

export interface Found {
  /** Those that the words mean: one, or several that only the speaker can tell apart. */
  readonly meant: ReadonlyArray<Listed>
  /** Where none is: those that come near. */
  readonly near: ReadonlyArray<Listed>
  /** Whether the words are a title from its beginning to its end. */
  readonly isWhole: boolean
}

/** Words of one reference that are compared. */
const comparedMaxWords = 40

/** Looks for a title; `isLoose` where its first word may be the speaker's verb and no part of it. */
export const findTasks = (tasks: ReadonlyArray<Listed>, text: string, isLoose = false): Found => {
  const wanted = stemsOf(text).slice(0, comparedMaxWords)
  const scored = tasks.map((task) => ({ task, ...scoreOf(wanted, task.title) }))
  const whole = scored.filter(({ isWhole }) => isWhole)
  if (whole.length > 0) return { meant: whole.map(({ task }) => task), near: [], isWhole: true }
  const full = best(scored.filter(({ share }) => share === 1))
  if (full.some(({ slips }) => slips === 0)) return { meant: tasksOf(full), near: [], isWhole: false }
  const [, ...rest] = wanted
  if (isLoose && rest.length > 0) {
    const { meant } = findTasks(tasks, rest.join(" "))
    if (meant.length > 0) return { meant, near: [], isWhole: false }
  }
  if (full.length > 0) return { meant: tasksOf(full), near: [], isWhole: false }
  return { meant: [], near: tasksOf(best(scored.filter(({ share }) => share >= 0.5))), isWhole: false }
}

interface Scored {
  readonly task: Listed
  readonly share: number
  readonly slips: number
}

/** Those that share most; a slip of the finger counts against a title where another has none. */
const best = (scored: ReadonlyArray<Scored>): ReadonlyArray<Scored> => {
  const most = Math.max(0, ...scored.map(({ share }) => share))
  const likely = scored.filter(({ share }) => share === most)
  const fewest = Math.min(...likely.map(({ slips }) => slips))
  return likely.filter(({ slips }) => slips === fewest)
}

const tasksOf = (scored: ReadonlyArray<Scored>): ReadonlyArray<Listed> => scored.map(({ task }) => task)

const scoreOf = (wanted: ReadonlyArray<string>, title: string) => {
  const stems = stemsOf(title)
  const exact = wanted.filter((stem) => stems.includes(stem)).length
  const slips = wanted.filter(
    (stem) => !stems.includes(stem) && stems.some((each) => isAlike(stem, each))
  ).length
  const share = wanted.length === 0 ? 0 : (exact + slips) / wanted.length
  return { share, slips, isWhole: exact === wanted.length && stems.length === wanted.length && exact > 0 }
}

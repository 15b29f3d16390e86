/**
 * Finds in a list of tasks the ones that words may mean.
 *
 * A title said whole is meant before any that only holds the words. What holds
 * some of the words alone, or has one of them in another spelling, is never taken,
 * only offered.
 */
import type { Listed } from "./todo-intents.ts"
import { isAlike, saysSomething, stemOf, stemsOf, tellingWords } from "./todo-words.ts"

export interface Found {
  /** Those that the words mean: one, or several that only the speaker can tell apart. */
  readonly meant: ReadonlyArray<Listed>
  /** Where none is: those that come near. */
  readonly near: ReadonlyArray<Listed>
  /** Whether the words are a title from its beginning to its end. */
  readonly isWhole: boolean
  /** Whether the near ones have each of the words, if not as it is spelled. */
  readonly isAlmost?: true
}

/** Words of one reference that are compared. */
const comparedMaxWords = 40

/** Looks for a title; `isLoose` where its first word may be the speaker's verb and no part of it. */
export const findTasks = (tasks: ReadonlyArray<Listed>, text: string, isLoose = false): Found => {
  const said = tasks.filter(({ title }) => title.toLowerCase() === text.toLowerCase())
  if (said.length > 0) return { meant: said, near: [], isWhole: true }
  if (!saysSomething(text)) return { meant: [], near: [], isWhole: false }
  const found = findWords(tasks, tellingWords(text).slice(0, comparedMaxWords), isLoose)
  return isLoose ? withoutVerbAlone(found, text) : found
}

/** "Called" alone may be any call: a task is named by more than the verb that it begins with. */
const withoutVerbAlone = (found: Found, text: string): Found => {
  const stems = stemsOf(text)
  const isNamed = ({ title }: Listed) => {
    const [, ...rest] = stemsOf(title)
    return rest.length === 0 || stems.some((stem) => rest.some((each) => isAlike(stem, each)))
  }
  const meant = found.meant.filter(isNamed)
  return meant.length > 0
    ? { ...found, meant }
    : { meant, near: found.meant.length > 0 ? found.meant : found.near, isWhole: false }
}

const findWords = (tasks: ReadonlyArray<Listed>, wanted: ReadonlyArray<string>, isLoose: boolean): Found => {
  const scored = tasks.map((task) => ({ task, ...scoreOf(wanted, task.title, isLoose) }))
  const whole = scored.filter(({ isWhole }) => isWhole)
  if (whole.length > 0) return { meant: whole.map(({ task }) => task), near: [], isWhole: true }
  const full = best(scored.filter(({ share }) => share === 1))
  if (full.some(({ slips }) => slips === 0)) return { meant: tasksOf(full), near: [], isWhole: false }
  if (full.length > 0) return { meant: [], near: tasksOf(full), isWhole: false, isAlmost: true }
  const [, ...rest] = wanted
  if (isLoose && rest.length > 0) {
    const { meant } = findWords(tasks, rest, false)
    if (meant.length > 0) return { meant, near: [], isWhole: false }
  }
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

const scoreOf = (wanted: ReadonlyArray<string>, title: string, isLoose: boolean) => {
  const words = tellingWords(title)
  const exact = wanted.filter((word) => words.some((each) => isSame(word, each, isLoose))).length
  const some = wanted.filter((word) => words.some((each) => isAlike(stemOf(word), stemOf(each)))).length
  const share = wanted.length === 0 ? 0 : some / wanted.length
  return {
    share,
    slips: some - exact,
    isWhole: exact === wanted.length && words.length === wanted.length && exact > 0
  }
}

/** Whether two words are one; what somebody tells of an errand may have another form of its verb. */
const isSame = (one: string, other: string, isLoose: boolean): boolean =>
  one === other || (isLoose && stemOf(one) === stemOf(other))

/**
 * Utterances that people who had not seen the assistant's rules wrote down, each with what it is to do.
 *
 * A file has one line for each. A line begins with a fresh list; indices count its
 * todos from 0, and of what is said in several ways any is right, in any case of
 * letters. Whatever a line does not expect must not happen.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { answered } from "./chat-words.ts"
import type { Json, Story } from "./platform.ts"

export interface Paraphrase {
  readonly utterance: string
  readonly todos: ReadonlyArray<{ readonly title: string; readonly completed?: boolean }>
  readonly expect: {
    readonly added?: ReadonlyArray<ReadonlyArray<string>>
    readonly listed?: "all" | "pending" | "completed" | "any"
    readonly completed?: ReadonlyArray<number>
    readonly deleted?: ReadonlyArray<number>
    readonly updated?: {
      readonly index: number
      readonly title?: ReadonlyArray<string>
      readonly description?: ReadonlyArray<string>
    }
    readonly nothing?: true
  }
}

/** A todo as `list_tasks` tells it. */
export interface Kept {
  readonly id: number
  readonly title: string
  readonly description: string | null
  readonly completed: boolean
}

export const paraphrasesIn = (name: string): ReadonlyArray<Paraphrase> =>
  readFileSync(new URL(`../stories/${name}`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** Says a line in the chat of somebody without todos, and tells what is wrong with what came of it; undefined where nothing is. */
export const wrongIn = Effect.fnUntraced(function* (mine: Story, line: Paraphrase) {
  const { todos, utterance } = line
  for (const { completed, title } of todos) {
    const { id } = yield* mine.post("/tasks", { title })
    if (completed) yield* mine.post(`/tasks/${id}/complete`)
  }
  const answer = yield* answered(mine, { message: utterance })
  const { items } = yield* mine.get("/tasks?type=todo&limit=200")
  const after = items.map(({ description, number, status, title }: Json): Kept => ({
    id: number,
    title,
    description,
    completed: status === "completed"
  }))
  const filters = answer.toolCalls.flatMap(({ arguments: args, tool }: Json) =>
    tool === "list_tasks" ? [args.status] : []
  )
  return wrongWith(line, after, filters, answer.response)
})

/** What is wrong with what became of a line's list; undefined where nothing is. */
export const wrongWith = (
  { expect: wanted, todos, utterance }: Paraphrase,
  after: ReadonlyArray<Kept>,
  filters: ReadonlyArray<unknown>,
  response: string
) => {
  const seen = outcomeOf(todos, after)
  const isListed =
    wanted.listed === undefined ||
    (wanted.listed === "any" ? filters.length > 0 : filters.includes(wanted.listed))
  const isRight =
    isListed &&
    sameTitles(wanted.added ?? [], seen.added) &&
    same(wanted.completed ?? [], seen.completed) &&
    same(wanted.deleted ?? [], seen.deleted) &&
    isUpdated(wanted.updated, seen.updated)
  return isRight ? undefined : { utterance, wanted, seen, filters, response }
}

type Updated = { readonly index: number; readonly title?: string; readonly description?: string }

const outcomeOf = (todos: Paraphrase["todos"], after: ReadonlyArray<Kept>) => {
  const completed: Array<number> = []
  const deleted: Array<number> = []
  const updated: Array<Updated> = []
  for (const [index, before] of todos.entries()) {
    const now = after.find(({ id }) => id === index + 1)
    if (now === undefined) deleted.push(index)
    else {
      if (now.completed && before.completed !== true) completed.push(index)
      const title = now.title === before.title ? {} : { title: now.title }
      const description = now.description === null ? {} : { description: now.description }
      if (Object.keys({ ...title, ...description }).length > 0)
        updated.push({ index, ...title, ...description })
    }
  }
  const added = after
    .filter(({ id }) => id > todos.length)
    .toSorted((one, other) => one.id - other.id)
    .map(({ title }) => title)
  return { added, completed, deleted, updated }
}

const isOneOf = (accepted: ReadonlyArray<string>, said: string): boolean =>
  accepted.some((each) => each.toLowerCase() === said.toLowerCase())

const sameTitles = (wanted: ReadonlyArray<ReadonlyArray<string>>, titles: ReadonlyArray<string>): boolean =>
  wanted.length === titles.length && wanted.every((accepted, index) => isOneOf(accepted, titles[index] ?? ""))

const same = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): boolean =>
  one.toSorted().join() === other.toSorted().join()

const isUpdated = (wanted: Paraphrase["expect"]["updated"], seen: ReadonlyArray<Updated>): boolean => {
  const [only, ...others] = seen
  if (wanted === undefined) return only === undefined
  return (
    only?.index === wanted.index &&
    others.length === 0 &&
    isField(wanted.title, only.title) &&
    isField(wanted.description, only.description)
  )
}

const isField = (accepted: ReadonlyArray<string> | undefined, said: string | undefined): boolean =>
  accepted === undefined ? said === undefined : said !== undefined && isOneOf(accepted, said)

/**
 * What a person's own task may say.
 *
 * The sentences are those of the todo tools (P3-MCP-01, 05) and the same at
 * every door. Characters are counted whole, so that a flag of two code units is
 * one. What becomes of a todo stands in `task.ts`.
 */
import { Schema } from "effect"
import type { JsonFault } from "./json.ts"

export const todoBounds = { titleMaxChars: 200, descriptionMaxChars: 1_000 } as const

export const todoSentences = {
  notFound: "Task not found",
  noTitle: "Title is required",
  longTitle: `Title must be ${todoBounds.titleMaxChars} characters or less`,
  longDescription: `Description must be ${todoBounds.descriptionMaxChars} characters or less`,
  nothingToChange: "At least title or description required"
} as const

const lengthOf = (text: string): number => [...text].length

const titleFault = (title: string): string | undefined => {
  const length = lengthOf(title.trim())
  if (length === 0) return todoSentences.noTitle
  return length > todoBounds.titleMaxChars ? todoSentences.longTitle : undefined
}

const descriptionFault = (description: string): string | undefined =>
  lengthOf(description) > todoBounds.descriptionMaxChars ? todoSentences.longDescription : undefined

/** White space around it is not part of it. */
export const TodoTitle = Schema.String.check(
  Schema.makeFilter(titleFault, {
    toJsonSchema: () => ({ minLength: 1, maxLength: todoBounds.titleMaxChars })
  })
).annotate({ description: `What is to be done, 1 to ${todoBounds.titleMaxChars} characters` })

export const TodoDescription = Schema.String.check(
  Schema.makeFilter(descriptionFault, { toJsonSchema: () => ({ maxLength: todoBounds.descriptionMaxChars }) })
).annotate({ description: `More about it, at most ${todoBounds.descriptionMaxChars} characters` })

/** What is asked for as a todo, before anybody has looked at it. */
export interface TodoWords {
  readonly title?: unknown
  readonly description?: unknown
}

/** The first thing that is wrong with the words of a new todo, as far as they are text. */
export const findNewTodoFault = (words: TodoWords): JsonFault | undefined =>
  words.title === undefined || words.title === null
    ? { pointer: "/title", message: todoSentences.noTitle }
    : findWordsFault(words)

/** The first thing that is wrong with new words for a todo, as far as they are text. */
export const findTodoEditFault = (words: TodoWords): JsonFault | undefined =>
  (words.title ?? words.description ?? null) === null
    ? { pointer: "", message: todoSentences.nothingToChange }
    : findWordsFault(words)

const findWordsFault = ({ description, title }: TodoWords): JsonFault | undefined => {
  const wrongTitle = typeof title === "string" ? titleFault(title) : undefined
  if (wrongTitle !== undefined) return { pointer: "/title", message: wrongTitle }
  const wrong = typeof description === "string" ? descriptionFault(description) : undefined
  return wrong === undefined ? undefined : { pointer: "/description", message: wrong }
}

/**
 * Of tasks that somebody is at, those that somebody else has decided or answered meanwhile.
 *
 * A task that leaves the list may only have made room for newer ones, so
 * each that left is read: what it says of itself counts.
 */
import type { Task } from "@tropism/domain/task"
import { useQueries } from "@tanstack/react-query"
import { taskQuery } from "../server/queries.ts"
import { visibleText } from "../words/visible-text.ts"
import { decidedSentence } from "./decided-words.ts"

export interface Overtaken<A extends Task> {
  /** What still waits. */
  readonly left: ReadonlyArray<A>
  /** Who decided what of the others, a sentence each. */
  readonly sentences: ReadonlyArray<string>
}

/** `listed` is what waits as the page knows it. */
export const useOvertaken = <A extends Task>(
  projectId: string,
  held: ReadonlyArray<A>,
  listed: ReadonlyArray<Task>
): Overtaken<A> => {
  const waiting = new Set<string>(listed.map(({ id }) => id))
  const gone = held.filter(({ id }) => !waiting.has(id))
  const read = useQueries({ queries: gone.map(({ id }) => taskQuery(projectId, id)) })
  const decided = new Map(
    read.flatMap(({ data }) => {
      const sentence = data && decidedSentence(data, visibleText)
      return sentence === undefined ? [] : [[String(data?.id), sentence] as const]
    })
  )
  return { left: held.filter(({ id }) => !decided.has(id)), sentences: [...decided.values()] }
}

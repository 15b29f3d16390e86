/**
 * All that waits for a person, by its kind and in the order in which it stands on the page.
 */
import { isPromotion, isQuestion, isSuggestion, isTodo, isUndo, type Task } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { pendingTasksQuery } from "../server/queries.ts"
import { groupSuggestions } from "../suggestion/group-suggestions.ts"
import { useStopped } from "./use-stopped.ts"

const noTasks: ReadonlyArray<Task> = []

export const useWaiting = (projectId: string) => {
  const pending = useQuery(pendingTasksQuery(projectId))
  const stopped = useStopped(projectId)
  const tasks = pending.data?.tasks ?? noTasks
  const groups = useMemo(() => groupSuggestions(tasks.filter(isSuggestion)), [tasks])
  const questions = useMemo(() => byNumber(tasks.filter(isQuestion)), [tasks])
  const todos = useMemo(() => byNumber(tasks.filter(isTodo)), [tasks])
  const undos = useMemo(() => tasks.filter(isUndo), [tasks])
  const promotions = useMemo(() => tasks.filter(isPromotion), [tasks])
  const shown = useMemo(() => groups.flatMap((group) => group.tasks), [groups])
  const ids = [...questions, ...stopped, ...undos, ...promotions, ...shown, ...todos]
    .map(({ id }) => id)
    .join(" ")
  // The same tasks read anew are the same order: only another one is a list that moved.
  const order = useMemo(() => (ids === "" ? [] : ids.split(" ")), [ids])
  return { pending, groups, shown, order, questions, stopped, todos, undos, promotions }
}

const byNumber = <A extends Task>(tasks: ReadonlyArray<A>): ReadonlyArray<A> =>
  tasks.toSorted((one, other) => one.number - other.number)

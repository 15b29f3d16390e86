/**
 * All that waits for a person, by its kind and in the order in which it stands on the page.
 */
import { isPromotion, isQuestion, isSuggestion, isTodo, isUndo, type Task } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { useMemo, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { pendingTasksQuery } from "../server/queries.ts"
import { groupSuggestions } from "../suggestion/group-suggestions.ts"
import { useStopped } from "./use-stopped.ts"

const noTasks: ReadonlyArray<Task> = []
const noStopped: ReturnType<typeof useStopped> = []

export const useWaiting = (projectId: string) => {
  const pending = useQuery(pendingTasksQuery(projectId))
  const allStopped = useStopped(projectId)
  const [isMineOnly, setIsMineOnly] = useState(false)
  const { principal } = useConsole()
  const all = pending.data?.tasks ?? noTasks
  const tasks = useMemo(
    () => (isMineOnly ? all.filter((task) => isFor(task, principal.userId)) : all),
    [all, isMineOnly, principal.userId]
  )
  const groups = useMemo(() => groupSuggestions(tasks.filter(isSuggestion)), [tasks])
  const questions = useMemo(() => byNumber(tasks.filter(isQuestion)), [tasks])
  const todos = useMemo(() => byNumber(tasks.filter(isTodo)), [tasks])
  const undos = useMemo(() => tasks.filter(isUndo), [tasks])
  const promotions = useMemo(() => tasks.filter(isPromotion), [tasks])
  const shown = useMemo(() => groups.flatMap((group) => group.tasks), [groups])
  const stopped = isMineOnly ? noStopped : allStopped
  const ids = [...questions, ...stopped, ...undos, ...promotions, ...shown, ...todos]
    .map(({ id }) => id)
    .join(" ")
  // The same tasks read anew are the same order: only another one is a list that moved.
  const order = useMemo(() => (ids === "" ? [] : ids.split(" ")), [ids])
  const mine = {
    isOnly: isMineOnly,
    set: setIsMineOnly,
    isOffered: isMineOnly || all.some((task) => assigneeOf(task) !== null)
  }
  return { pending, mine, groups, shown, order, questions, stopped, todos, undos, promotions }
}

const assigneeOf = (task: Task) => (isSuggestion(task) || isQuestion(task) ? task.assignee : null)

/** A todo is its owner's, and nobody else sees it. */
const isFor = (task: Task, userId: string): boolean => isTodo(task) || assigneeOf(task) === userId

const byNumber = <A extends Task>(tasks: ReadonlyArray<A>): ReadonlyArray<A> =>
  tasks.toSorted((one, other) => one.number - other.number)

/**
 * Settles a task with one click, completes, approves or rejects it, and tells what became of it.
 * The second of two presses in haste does nothing.
 *
 * A settled task leaves the list at once; a refused one stays, with the refusal.
 */
import { isPromotion, isTodo, isUndo, type Task } from "@tropism/domain/task"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useContext, useRef } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { failureSentence, isLeftOpen } from "../server/problem.ts"
import { type PendingTasks, pendingTasksKey } from "../server/queries.ts"
import { type Settlement, settle } from "../server/request.ts"
import { approveUndo, foundDone } from "./inbox-requests.ts"
import { InboxPlace } from "./linked-card.ts"
import { visibleText } from "../words/visible-text.ts"

interface Settling {
  readonly how: Settlement
  /** Of an undo: what stays as it is. */
  readonly leaveOut?: ReadonlyArray<string>
}

const pastWords = { complete: "Done", approve: "Approved", reject: "Rejected" } as const

/** What was settled; of earned trust what holds now, for its title says what held before. */
const settledSentence = (task: Task, how: Settlement): string => {
  if (!isPromotion(task)) return task.title
  const what = `${task.payload.operation} of ${task.payload.objectType}`
  return how === "reject"
    ? `${task.agentName} needs approval again: ${what}.`
    : `${task.agentName} stays auto-approved: ${what}.`
}

export const useSettling = (projectId: string, task: Task) => {
  const queryClient = useQueryClient()
  const show = useToasts()
  const { stay } = useContext(InboxPlace)
  const isSettling = useRef(false)
  const name = isTodo(task) ? `t${task.number}` : `#${task.number}`
  const { error, isPending, mutate } = useMutation({
    mutationFn: ({ how, leaveOut = [] }: Settling): Promise<Task> =>
      Effect.runPromise(
        (isUndo(task) && how === "approve"
          ? approveUndo(projectId, task, leaveOut)
          : settle(projectId, task, how)
        ).pipe(
          Effect.catch(
            foundDone(
              projectId,
              task.id,
              ({ status }) => status === (how === "reject" ? "rejected" : "completed")
            )
          )
        )
      ),
    onSuccess: (_, { how }) => {
      const key = pendingTasksKey(projectId)
      // An answer under way still lists the task, so it must not arrive.
      return queryClient.cancelQueries({ queryKey: key }).then(() => {
        queryClient.setQueryData<PendingTasks>(
          key,
          (pending) => pending && { ...pending, tasks: pending.tasks.filter(({ id }) => id !== task.id) }
        )
        show({
          tone: "done",
          title: `${pastWords[how]} ${name}`,
          sentence: visibleText(settledSentence(task, how))
        })
        return queryClient.invalidateQueries({ queryKey: [projectId] })
      })
    },
    onError: (failure) => {
      isSettling.current = false
      stay(task.id)
      const isUnknown = isLeftOpen(failure)
      const title = isUnknown ? `Outcome unknown: ${name}` : `${name} is unchanged`
      show({ tone: "refused", isUnknown, title, sentence: failureSentence(failure) })
      return queryClient.invalidateQueries({ queryKey: pendingTasksKey(projectId) })
    }
  })
  return {
    settle: (settling: Settling) => {
      // The second press comes before the page has drawn that the first is on its way.
      if (isSettling.current) return
      isSettling.current = true
      mutate(settling)
    },
    isSending: isPending,
    refusal: error === null ? undefined : failureSentence(error)
  }
}

/**
 * Carries an answer to the server and tells what became of it.
 *
 * An answered question leaves the list at once; a refused one stays with the
 * refusal written on it, and with what was written.
 */
import { isQuestion, type QuestionTask } from "@tropism/domain/task"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useContext } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { failureSentence, isLeftOpen } from "../server/problem.ts"
import { type PendingTasks, pendingTasksKey } from "../server/queries.ts"
import { answer } from "../server/request.ts"
import { visibleText } from "../words/visible-text.ts"
import { foundDone } from "./inbox-requests.ts"
import { InboxPlace } from "./linked-card.ts"

/** `onAnswered` is told once the server has taken the answer. */
export const useAnswer = (projectId: string, task: QuestionTask, onAnswered: () => void) => {
  const queryClient = useQueryClient()
  const show = useToasts()
  const { stay } = useContext(InboxPlace)
  const { error, isPending, mutate, variables } = useMutation({
    mutationFn: (text: string) =>
      Effect.runPromise(
        Effect.catch(
          Effect.asVoid(answer(projectId, task, text)),
          foundDone(projectId, task.id, (now) => isQuestion(now) && now.payload.answer === text)
        )
      ),
    onSuccess: () => {
      onAnswered()
      const key = pendingTasksKey(projectId)
      // An answer under way still lists the question, so it must not arrive.
      return queryClient.cancelQueries({ queryKey: key }).then(() => {
        queryClient.setQueryData<PendingTasks>(
          key,
          (pending) => pending && { ...pending, tasks: pending.tasks.filter(({ id }) => id !== task.id) }
        )
        show({
          tone: "done",
          title: `Answered #${task.number}`,
          sentence: `${visibleText(task.agentName)} continues with your answer.`
        })
        return queryClient.invalidateQueries({ queryKey: [projectId] })
      })
    },
    onError: (failure) => {
      stay(task.id)
      const isUnknown = isLeftOpen(failure)
      const title = isUnknown
        ? `It is not known whether #${task.number} was answered`
        : `#${task.number} was not answered`
      show({ tone: "refused", isUnknown, title, sentence: failureSentence(failure) })
      return queryClient.invalidateQueries({ queryKey: pendingTasksKey(projectId) })
    }
  })
  return {
    give: mutate,
    given: variables,
    isSending: isPending,
    refusal: error === null ? undefined : failureSentence(error)
  }
}

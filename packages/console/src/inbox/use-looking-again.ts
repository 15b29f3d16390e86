/**
 * Lets the agent of a suggestion look again, or plans an undo anew, and tells what came of it.
 */
import { isUndo, type Task } from "@tropism/domain/task"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useToasts } from "../parts/toasts.tsx"
import { failureSentence } from "../server/problem.ts"
import { lookAgain } from "./inbox-requests.ts"

export const useLookingAgain = (projectId: string) => {
  const queryClient = useQueryClient()
  const show = useToasts()
  const { isPending, mutate, variables } = useMutation({
    mutationFn: (task: Task) => Effect.runPromise(lookAgain(projectId, task)),
    onSuccess: (task) => {
      show({
        tone: "done",
        title: isUndo(task)
          ? `Refreshed the plan of #${task.number}`
          : `The agent re-evaluates #${task.number}`,
        sentence: isUndo(task)
          ? "The plan is up to date with the current graph."
          : "The result appears here; the suggestion stays pending."
      })
      return queryClient.invalidateQueries({ queryKey: [projectId] })
    },
    onError: (failure, task) =>
      show({ tone: "refused", title: `#${task.number} is unchanged`, sentence: failureSentence(failure) })
  })
  return { ask: mutate, askingId: isPending ? variables?.id : undefined }
}

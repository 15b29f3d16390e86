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
        title: isUndo(task) ? `Planned #${task.number} anew` : `The agent looks at #${task.number} again`,
        sentence: isUndo(task)
          ? "The plan is made for the graph as it is now."
          : "What it finds comes up here by itself; the suggestion waits meanwhile."
      })
      return queryClient.invalidateQueries({ queryKey: [projectId] })
    },
    onError: (failure, task) =>
      show({ tone: "refused", title: `#${task.number} stays as it is`, sentence: failureSentence(failure) })
  })
  return { ask: mutate, askingId: isPending ? variables?.id : undefined }
}

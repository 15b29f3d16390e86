/**
 * Plans to take back what a run did and opens the plan: nothing is undone before somebody approves it.
 *
 * The plan is of the whole run. What was approved just now is chosen in it, and
 * the rest is left out until the person says otherwise.
 */
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { Effect } from "effect"
import { useCallback } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { failureSentence } from "../server/problem.ts"
import { pendingTasksKey } from "../server/queries.ts"
import { planUndo } from "./inbox-requests.ts"

export const usePlanningUndo = (projectId: string) => {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const show = useToasts()
  return useCallback(
    (runId: string, entityIds: ReadonlyArray<string>) => {
      Effect.runFork(
        planUndo(projectId, runId).pipe(
          Effect.match({
            onFailure: (failure) =>
              show({ tone: "refused", title: "Nothing can be undone", sentence: failureSentence(failure) }),
            onSuccess: (task) => {
              queryClient.invalidateQueries({ queryKey: pendingTasksKey(projectId) })
              navigate({
                to: "/tasks/$taskId",
                params: { taskId: task.id },
                search: { only: entityIds.join(",") }
              })
            }
          })
        )
      )
    },
    [projectId, queryClient, navigate, show]
  )
}

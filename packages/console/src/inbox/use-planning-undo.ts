/**
 * Plans to take back what a run did and opens the plan: nothing is undone before somebody approves it.
 * Whoever is elsewhere by then stays there, and is told where the plan is.
 *
 * The plan is of the whole run. What was approved just now is chosen in it, and
 * the rest is left out until the person says otherwise.
 */
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { Effect } from "effect"
import { useCallback, useRef } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { failedMessage } from "../server/act-words.ts"
import { failureSentence, isLeftOpen } from "../server/problem.ts"
import { pendingTasksKey } from "../server/queries.ts"
import { newRequestKey } from "../server/request-key.ts"
import { useHere } from "../server/use-here.ts"
import { planUndo } from "./inbox-requests.ts"

export const usePlanningUndo = (projectId: string) => {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const show = useToasts()
  const here = useHere()
  const attempt = useRef<{ readonly runId: string; readonly key: string }>(undefined)
  return useCallback(
    (runId: string, entityIds: ReadonlyArray<string>) => {
      const pressed = here()
      if (attempt.current?.runId !== runId) attempt.current = { runId, key: newRequestKey() }
      Effect.runFork(
        planUndo(projectId, runId, attempt.current.key).pipe(
          Effect.match({
            onFailure: (failure) =>
              show(
                isLeftOpen(failure)
                  ? failedMessage("Plan undo", failure)
                  : { tone: "refused", title: "Nothing can be undone", sentence: failureSentence(failure) }
              ),
            onSuccess: (task) => {
              attempt.current = undefined
              queryClient.invalidateQueries({ queryKey: pendingTasksKey(projectId) })
              const open = () =>
                navigate({
                  to: "/tasks/$taskId",
                  params: { taskId: task.id },
                  search: { only: entityIds.join(",") }
                })
              if (pressed.isHere()) open()
              else
                show({
                  tone: "done",
                  title: "Undo planned",
                  sentence: `#${task.number} lists the outcome for each object. Nothing changes until someone approves it.`,
                  action: { label: "Open", run: open }
                })
            }
          })
        )
      )
    },
    [projectId, queryClient, navigate, show, here]
  )
}

/**
 * Carries decisions to the server, one after the other, and tells what became of each.
 *
 * A decided suggestion leaves the list at once; a refused one stays with the
 * refusal written on it. Nothing is decided on the page before the server said so.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { type Dispatch, useCallback } from "react"
import { type Message, useToasts } from "../parts/toasts.tsx"
import { failureSentence, isUnauthorized } from "../server/problem.ts"
import { type PendingTasks, pendingTasksKey, principalQuery } from "../server/queries.ts"
import { approve, reject } from "../server/request.ts"
import { approvalSentence, rejectionSentence } from "../suggestion/change-words.ts"
import type { Decision, InboxEvent } from "./inbox-state.ts"

export type Decide = (decision: Decision, tasks: ReadonlyArray<SuggestionTask>, reason?: string) => void

interface Outcome {
  readonly task: SuggestionTask
  readonly refusal: string | undefined
}

export const useDecisions = (projectId: string, dispatch: Dispatch<InboxEvent>): Decide => {
  const queryClient = useQueryClient()
  const show = useToasts()
  return useCallback(
    (decision, tasks, reason = "") => {
      dispatch({ type: "decisionStarted", ids: tasks.map((task) => task.id), decision })
      const key = pendingTasksKey(projectId)

      /** An answer under way still lists the decided task, so it must not arrive. */
      const forget = (task: SuggestionTask) =>
        Effect.promise(() => queryClient.cancelQueries({ queryKey: key })).pipe(
          Effect.andThen(
            Effect.sync(() => {
              queryClient.setQueryData<PendingTasks>(
                key,
                (pending) =>
                  pending && { ...pending, tasks: pending.tasks.filter(({ id }) => id !== task.id) }
              )
              dispatch({ type: "decided", id: task.id })
            })
          )
        )

      const decideOne = Effect.fnUntraced(
        function* (task: SuggestionTask) {
          const answer = yield* decision === "approve"
            ? approve(projectId, task)
            : reject(projectId, task, reason)
          yield* forget(task)
          return { task: answer, refusal: undefined } satisfies Outcome
        },
        (effect, task) =>
          effect.pipe(
            Effect.catch((failure) =>
              Effect.sync((): Outcome => {
                const refusal = failureSentence(failure)
                dispatch({ type: "decisionRefused", id: task.id, sentence: refusal })
                if (isUnauthorized(failure))
                  queryClient.invalidateQueries({ queryKey: principalQuery.queryKey })
                return { task, refusal }
              })
            )
          )
      )

      Effect.runFork(
        Effect.forEach(tasks, decideOne).pipe(
          Effect.andThen((outcomes) =>
            Effect.sync(() => {
              for (const message of messages(decision, outcomes, reason)) show(message)
              queryClient.invalidateQueries({ queryKey: [projectId] })
            })
          )
        )
      )
    },
    [projectId, dispatch, queryClient, show]
  )
}

/** What to tell: one sentence for one suggestion, a count and the first refusals for many. */
export const messages = (
  decision: Decision,
  outcomes: ReadonlyArray<Outcome>,
  reason: string
): ReadonlyArray<Message> => {
  const word = decision === "approve" ? "Approved" : "Rejected"
  const done = outcomes.filter(({ refusal }) => refusal === undefined)
  const refused = outcomes.filter(({ refusal }) => refusal !== undefined)
  const [first] = done
  const told: Array<Message> = []
  if (first) {
    const sentence = decision === "approve" ? approvalSentence(first.task) : rejectionSentence(reason)
    const isOne = done.length === 1
    told.push({
      tone: "done",
      title: isOne ? `${word} #${first.task.number}` : `${word} ${done.length} suggestions`,
      sentence: isOne || decision === "reject" ? sentence : manyWords(done)
    })
  }
  if (refused.length > 0) told.push(refusalMessage(decision, refused))
  return told
}

const manyWords = (done: ReadonlyArray<Outcome>): string => {
  const unchanged = done.filter(({ task }) => task.outcome?.change === "unchanged").length
  const changed = `${done.length - unchanged} of ${done.length} changed the graph`
  return unchanged === 0 ? "All of them are in the graph now." : `${changed}; for the rest it was so already.`
}

const maxRefusalsTold = 3

const refusalMessage = (decision: Decision, refused: ReadonlyArray<Outcome>): Message => {
  const [only] = refused
  const verb = decision === "approve" ? "approved" : "rejected"
  if (refused.length === 1 && only) {
    return { tone: "refused", title: `#${only.task.number} was not ${verb}`, sentence: only.refusal ?? "" }
  }
  const told = refused.slice(0, maxRefusalsTold).map(({ task, refusal }) => `#${task.number}: ${refusal}`)
  const rest = refused.length - told.length
  return {
    tone: "refused",
    title: `${refused.length} suggestions were not ${verb}`,
    sentence: [...told, ...(rest > 0 ? [`And ${rest} more; each says why.`] : [])].join(" ")
  }
}

/**
 * Carries decisions to the server, one after the other, and tells what became of each.
 *
 * A decided suggestion leaves the list at once; a refused one stays with the
 * refusal written on it. Nothing is decided on the page before the server said so.
 */
import type { Properties } from "@tropism/domain/json"
import { isSuggestion, type SuggestionTask } from "@tropism/domain/task"
import { useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { type Dispatch, useCallback } from "react"
import { type Message, useToasts } from "../parts/toasts.tsx"
import { failureSentence, isLeftOpen, isOfWhoAsks } from "../server/problem.ts"
import { type PendingTasks, pendingTasksKey, principalQuery } from "../server/queries.ts"
import { approve, type Failure, reject } from "../server/request.ts"
import { approvalSentence, rejectionSentence } from "../suggestion/change-words.ts"
import { limits } from "../limits.ts"
import {
  approveEdited,
  decideTogether,
  foundDone,
  isDecidedAlready,
  type Outcome,
  whoDecided
} from "./inbox-requests.ts"
import type { Decision, InboxEvent } from "./inbox-state.ts"
import { asRead } from "./use-standing-refusals.ts"
import { usePlanningUndo } from "./use-planning-undo.ts"

export interface DecisionWords {
  /** Of a rejection. */
  readonly reason?: string
  /** Properties to approve in place of the suggested ones. */
  readonly edit?: Properties
}

/** Decides, and answers with the sentences of the refusals by the ids of their tasks. */
export type Decide = (
  decision: Decision,
  tasks: ReadonlyArray<SuggestionTask>,
  words?: DecisionWords
) => Promise<ReadonlyMap<string, string>>

/** A task that was decided, or stays with the sentence that says why. */
interface Told {
  readonly task: SuggestionTask
  readonly refusal: string | undefined
  /** Nobody knows what became of it. */
  readonly isUnknown?: boolean
}

export const useDecisions = (projectId: string, dispatch: Dispatch<InboxEvent>): Decide => {
  const queryClient = useQueryClient()
  const show = useToasts()
  const planUndo = usePlanningUndo(projectId)
  return useCallback(
    (decision, tasks, words = {}) => {
      const { reason = "" } = words
      dispatch({ type: "decisionStarted", ids: tasks.map((task) => task.id), decision })
      const key = pendingTasksKey(projectId)

      /** An answer under way still lists the decided tasks, so it must not arrive. */
      const forget = (decided: ReadonlyArray<SuggestionTask>) => {
        const ids = new Set<string>(decided.map(({ id }) => id))
        return Effect.promise(() => queryClient.cancelQueries({ queryKey: key })).pipe(
          Effect.andThen(
            Effect.sync(() => {
              queryClient.setQueryData<PendingTasks>(
                key,
                (pending) => pending && { ...pending, tasks: pending.tasks.filter(({ id }) => !ids.has(id)) }
              )
              for (const id of ids) dispatch({ type: "decided", id })
            })
          )
        )
      }

      /** Whoever was too late hears who was first, and what they decided. */
      const refusalOf = (task: SuggestionTask, failure: Failure) =>
        isDecidedAlready(failure)
          ? whoDecided(projectId, task.id).pipe(
              Effect.map((sentence) => sentence ?? failureSentence(failure)),
              Effect.orElseSucceed(() => failureSentence(failure))
            )
          : Effect.succeed(failureSentence(failure))

      const tell = Effect.fnUntraced(function* (outcomes: ReadonlyArray<Outcome>) {
        yield* forget(outcomes.flatMap(({ failure, task }) => (failure === undefined ? [task] : [])))
        return yield* Effect.forEach(
          outcomes,
          Effect.fnUntraced(function* ({ failure, task }) {
            if (failure === undefined) return { task, refusal: undefined } satisfies Told
            const refusal = yield* refusalOf(task, failure)
            dispatch({ type: "decisionRefused", id: task.id, sentence: refusal })
            if (isOfWhoAsks(failure)) queryClient.invalidateQueries({ queryKey: principalQuery.queryKey })
            return { task, refusal, isUnknown: isLeftOpen(failure) } satisfies Told
          })
        )
      })

      return Effect.runPromise(
        Effect.forEach(portionsOf(tasks), (portion) =>
          Effect.flatMap(decidePortion(projectId, decision, portion, words), tell)
        ).pipe(
          Effect.map((told) => {
            const outcomes = told.flat()
            const runIds = new Set(
              outcomes.flatMap(({ refusal, task }) => (refusal === undefined ? [task.runId] : []))
            )
            const [runId] = runIds
            const hasChanged = outcomes.some(
              ({ task }) => task.outcome !== null && task.outcome.change !== "unchanged"
            )
            const undo =
              decision === "approve" && runId !== undefined && runIds.size === 1 && hasChanged
                ? {
                    label: "Undo",
                    run: () =>
                      planUndo(
                        runId,
                        outcomes.flatMap(({ task }) => task.outcome?.entityId ?? [])
                      )
                  }
                : undefined
            for (const message of messages(decision, outcomes, reason))
              show(message.tone === "done" && undo !== undefined ? { ...message, action: undo } : message)
            const refusals = new Map(
              outcomes.flatMap(({ refusal, task }) =>
                refusal === undefined ? [] : [[task.id as string, refusal] as const]
              )
            )
            queryClient.invalidateQueries({ queryKey: [projectId] }).then(() => {
              for (const task of queryClient.getQueryData<PendingTasks>(key)?.tasks ?? [])
                if (refusals.has(task.id)) dispatch({ type: "refusalRead", id: task.id, read: asRead(task) })
            })
            return refusals
          })
        )
      )
    },
    [projectId, dispatch, queryClient, show, planUndo]
  )
}

/** What became of a decision that failed: where only its answer was lost it may have been done. */
const whatBecame = (
  projectId: string,
  decision: Decision,
  task: SuggestionTask,
  failure: Failure
): Effect.Effect<Outcome> => {
  const status = decision === "approve" ? "completed" : "rejected"
  return foundDone(
    projectId,
    task.id,
    (now) => now.status === status
  )(failure).pipe(
    Effect.match({
      onFailure: (left): Outcome => ({ task, failure: left }),
      onSuccess: (now): Outcome => ({ task: isSuggestion(now) ? now : task, failure: undefined })
    })
  )
}

/** One by its own door; of many so many in a request, so that the list is seen to shrink. */
const portionsOf = (tasks: ReadonlyArray<SuggestionTask>): ReadonlyArray<ReadonlyArray<SuggestionTask>> =>
  Array.from({ length: Math.ceil(tasks.length / limits.decisionsPerRequest) }, (_, index) =>
    tasks.slice(index * limits.decisionsPerRequest, (index + 1) * limits.decisionsPerRequest)
  )

/** A request that fails as a whole fails each of its tasks. */
const decidePortion = (
  projectId: string,
  decision: Decision,
  tasks: ReadonlyArray<SuggestionTask>,
  { edit, reason = "" }: DecisionWords
): Effect.Effect<ReadonlyArray<Outcome>> => {
  const [only] = tasks
  const outcomes =
    tasks.length === 1 && only !== undefined
      ? (decision === "reject"
          ? reject(projectId, only, reason)
          : edit === undefined
            ? approve(projectId, only)
            : approveEdited(projectId, only, edit)
        ).pipe(Effect.map((task): ReadonlyArray<Outcome> => [{ task, failure: undefined }]))
      : decideTogether(projectId, decision, tasks, reason)
  return outcomes.pipe(
    Effect.catch((failure) => Effect.forEach(tasks, (task) => whatBecame(projectId, decision, task, failure)))
  )
}

/** What to tell: one sentence for one suggestion, a count and the first refusals for many. */
export const messages = (
  decision: Decision,
  outcomes: ReadonlyArray<Told>,
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
  for (const some of [refused.filter(isKnown), refused.filter((each) => !isKnown(each))])
    if (some.length > 0) told.push(refusalMessage(decision, some))
  return told
}

const isKnown = ({ isUnknown = false }: Told): boolean => !isUnknown

const manyWords = (done: ReadonlyArray<Told>): string => {
  const unchanged = done.filter(({ task }) => task.outcome?.change === "unchanged").length
  const changed = `${done.length - unchanged} of ${done.length} applied`
  return unchanged === 0 ? "All changes were applied." : `${changed}; the rest already matched.`
}

const maxRefusalsTold = 3

const refusalMessage = (decision: Decision, refused: ReadonlyArray<Told>): Message => {
  const [only] = refused
  const isUnknown = !refused.every(isKnown)
  const verb = decision === "approve" ? "approved" : "rejected"
  const title = (what: string, was: string): string =>
    isUnknown ? `Outcome unknown: ${what} may not be ${verb}` : `${what} ${was} not ${verb}`
  if (refused.length === 1 && only) {
    return {
      tone: "refused",
      isUnknown,
      title: title(`#${only.task.number}`, "was"),
      sentence: only.refusal ?? ""
    }
  }
  const told = refused.slice(0, maxRefusalsTold).map(({ task, refusal }) => `#${task.number}: ${refusal}`)
  const rest = refused.length - told.length
  return {
    tone: "refused",
    isUnknown,
    title: title(`${refused.length} suggestions`, "were"),
    sentence: [...told, ...(rest > 0 ? [`And ${rest} more; see each for the reason.`] : [])].join(" ")
  }
}

/**
 * Says who decided the current suggestion, when it leaves the list and it was not decided here.
 *
 * Without it the card under a reviewer's eyes would just be gone. A dialog that
 * holds it says so itself.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { Effect } from "effect"
import { useEffect, useMemo, useRef } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { whoDecided } from "./inbox-requests.ts"
import type { InboxState } from "./inbox-state.ts"

export const useDecidedElsewhere = (
  projectId: string,
  { currentId, deciding, refusals }: InboxState,
  suggestions: ReadonlyArray<SuggestionTask>,
  held: ReadonlyArray<SuggestionTask>
): void => {
  const show = useToasts()
  const order = useMemo(() => suggestions.map(({ id }): string => id), [suggestions])
  const isHeld = held.some(({ id }) => id === currentId)
  const last = useRef({ currentId, isOurs: false, order })
  useEffect(() => {
    const before = last.current
    const isOurs = currentId !== undefined && (isHeld || deciding.has(currentId) || refusals.has(currentId))
    last.current = { currentId, isOurs, order }
    const id = before.currentId
    if (id === undefined || before.isOurs || !before.order.includes(id) || order.includes(id)) return
    Effect.runFork(
      whoDecided(projectId, id).pipe(
        Effect.tap((sentence) =>
          Effect.sync(() => {
            if (sentence !== undefined) show({ tone: "done", title: "Decided elsewhere", sentence })
          })
        ),
        Effect.ignore
      )
    )
  }, [projectId, currentId, deciding, isHeld, order, refusals, show])
}

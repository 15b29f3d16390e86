/**
 * Lets go of the sentence of a refusal when its suggestion is no longer what was refused.
 *
 * What had moved when the server said no is read right behind it and is what the
 * sentence is about; only what changes after that makes it old.
 */
import type { SuggestionTask, Task } from "@tropism/domain/task"
import { type Dispatch, useEffect } from "react"
import type { InboxEvent, InboxState } from "./inbox-state.ts"

/** All that a card shows of its task, to be told from what it shows later. */
export const asRead = (task: Task): string => JSON.stringify(task)

export const useStandingRefusals = (
  shown: ReadonlyArray<SuggestionTask>,
  { refusals }: InboxState,
  dispatch: Dispatch<InboxEvent>
): void => {
  useEffect(() => {
    if (refusals.size === 0) return
    for (const task of shown) {
      const read = refusals.get(task.id)?.read
      if (read !== undefined && read !== asRead(task)) dispatch({ type: "refusalPassed", id: task.id })
    }
  }, [shown, refusals, dispatch])
}

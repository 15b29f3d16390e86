/**
 * Offers to let the agent look again at what has moved, and tells of the run that does.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { runStatusWord } from "../parts/run-status.tsx"
import { hasMovedSince, isGone, isLookedAtAgain } from "../suggestion/staleness.ts"
import { visibleText } from "../words/visible-text.ts"

interface LookAgainProps {
  readonly task: SuggestionTask
  readonly canDecide: boolean
  /** Whether the keys act on this card. */
  readonly hasKeys: boolean
  readonly isAsking: boolean
  readonly onLookAgain: (task: SuggestionTask) => void
}

export const LookAgain = ({ task, canDecide, hasKeys, isAsking, onLookAgain }: LookAgainProps): ReactNode => {
  const { rerun } = task
  // Of what is gone nothing can come of another look.
  const canLook = hasMovedSince(task) && !isGone(task)
  if (rerun === null && !canLook) return null
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-2 text-xs text-ink-soft">
      {canDecide && canLook && !isLookedAtAgain(task) && (
        <Button
          size="small"
          shortcut="L"
          isShortcutElsewhere={!hasKeys}
          disabled={isAsking}
          onClick={() => onLookAgain(task)}
        >
          Re-evaluate
          <span className="sr-only"> at {visibleText(task.title)}</span>
        </Button>
      )}
      {rerun === null ? (
        "The agent can re-evaluate it against the current version."
      ) : (
        <span>
          {isLookedAtAgain(task) ? "The agent is re-evaluating: " : "The agent has re-evaluated: "}
          <Link
            to="/runs/$runId"
            params={{ runId: rerun.runId }}
            className="rounded underline underline-offset-2"
          >
            its run is {runStatusWord(rerun.status)}
          </Link>
          .
        </span>
      )}
    </p>
  )
}

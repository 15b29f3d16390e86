/**
 * An agent has earned that it need not ask for one kind of change: seen, or taken back.
 */
import type { PromotionTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { CheckIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { confidenceText } from "../suggestion/change-words.ts"
import { countText } from "../words/amounts.ts"
import { TaskFrame } from "./task-frame.tsx"
import { useSettling } from "./use-settling.ts"

interface PromotionCardProps {
  readonly projectId: string
  readonly task: PromotionTask
  readonly canDecide: boolean
}

export const PromotionCard = ({ projectId, task, canDecide }: PromotionCardProps): ReactNode => {
  const { isSending, refusal, settle } = useSettling(projectId, task)
  const { agentVersion, objectType, operation, rate, reviews } = task.payload
  return (
    <TaskFrame task={task} kind="promotion" isBusy={isSending} mark={<TrustMark />} refusal={refusal}>
      <p className="text-sm text-ink-soft">
        Reviewers accepted {confidenceText(rate)} of {countText(reviews, "suggestion")}. Version{" "}
        {agentVersion} of{" "}
        <Link
          to="/agents/$agentId"
          params={{ agentId: task.agentId }}
          className="rounded underline underline-offset-2"
        >
          <Visible text={task.agentName} />
        </Link>{" "}
        now applies without approval: {operation} of <Visible text={objectType} exact />.
      </p>
      {canDecide && (
        <p className="flex flex-wrap gap-2">
          <Button
            weight="primary"
            data-decision="approve"
            disabled={isSending}
            onClick={() => settle({ how: "approve" })}
          >
            Allow
          </Button>
          <Button data-decision="reject" disabled={isSending} onClick={() => settle({ how: "reject" })}>
            Require approval again
          </Button>
        </p>
      )}
    </TaskFrame>
  )
}

const TrustMark = (): ReactNode => (
  <span
    title="Earned trust"
    className="grid size-7 shrink-0 place-items-center rounded-lg bg-leaf-soft text-leaf"
  >
    <CheckIcon />
    <span className="sr-only">Earned trust: </span>
  </span>
)

/**
 * Says before the click that the agent which suggested this may not act any more: a person may decide it all the same.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import type { ReactNode } from "react"
import { CautionIcon } from "../parts/icons.tsx"

export const AgentNotice = ({ task }: { readonly task: SuggestionTask }): ReactNode =>
  task.agentState === "enabled" || task.status !== "pending" ? null : (
    <p
      data-agent-state={task.agentState}
      className="flex items-start gap-2.5 rounded-lg border border-caution-line bg-caution px-3.5 py-2.5 text-xs text-caution-ink"
    >
      <CautionIcon className="mt-0.5" />
      <span className="min-w-0">
        <strong className="font-semibold">
          {task.agentState === "deleted" ? "Its agent was deleted." : "Its agent is disabled."}
        </strong>{" "}
        Approving makes the change all the same, in the agent's name and within its capabilities.
      </span>
    </p>
  )

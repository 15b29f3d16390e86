/**
 * Says before the click what became of the agent since: that it may not act any more, or that it may not do this any more.
 *
 * A person may decide what a disabled or deleted agent suggested; what its capabilities forbid can only be rejected.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { CautionIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"

export const AgentNotice = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const { agentId, agentState, denial } = task
  if (task.status !== "pending" || (agentState === "enabled" && denial === null)) return null
  return (
    <p
      data-agent-state={agentState}
      data-denied={denial !== null}
      className="flex items-start gap-2.5 rounded-lg border border-caution-line bg-caution px-3.5 py-2.5 text-xs text-caution-ink"
    >
      <CautionIcon className="mt-0.5" />
      <span className="min-w-0">
        <strong className="font-semibold">{titles[denial === null ? agentState : "denied"]}</strong>{" "}
        {denial === null ? (
          "You can still approve: the change is applied in the agent's name and within its capabilities."
        ) : (
          <>
            <Visible text={denial} />. Approving is refused.{" "}
            {agentState === "deleted" ? (
              "The agent was deleted. You can only reject this."
            ) : (
              <>
                Reject it, or{" "}
                <Link
                  to="/agents/$agentId"
                  params={{ agentId }}
                  className="rounded underline underline-offset-2"
                >
                  change the agent's capabilities
                </Link>
                .
              </>
            )}
          </>
        )}
      </span>
    </p>
  )
}

const titles = {
  enabled: "",
  disabled: "The agent is disabled.",
  deleted: "The agent was deleted.",
  denied: "The agent is not allowed to do this."
} as const

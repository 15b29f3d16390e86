/**
 * What one agent made of what was meant for it: handled, not handled, failed for good, and why it did not wake.
 */
import type { Agent } from "@tropism/domain/agent"
import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Command } from "../parts/command.tsx"
import { Failure } from "../parts/failure.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentQuery } from "../server/agent-queries.ts"
import { withStop } from "../words/full-stop.ts"
import { DeadLetters } from "./dead-letters.tsx"
import { PendingEvents } from "./pending-events.tsx"
import { ProcessingLog } from "./processing-log.tsx"
import { WhyNot } from "./why-not.tsx"

export const AgentReactionsPage = (): ReactNode => {
  const { agentId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const { data: agent, error } = useQuery(agentQuery(project.id, agentId))
  return (
    <>
      <PageHeader
        above={<Link to="/reactions">Reactions</Link>}
        title={agent === undefined ? "Reactions" : <Visible text={agent.name} />}
        lead={agent && <StateOf agent={agent} />}
      />
      {error !== null && <Failure error={error} />}
      {agent === undefined && error === null && <Skeleton label="Loading agent …" />}
      {agent !== undefined && <Tabs key={agent.id} label="Event log" tabs={tabsOf(agent)} />}
      <div className="mt-8 max-w-xl">
        <Command text={`npx tropism explain EVENT ${agent?.name ?? "AGENT"}`} />
      </div>
    </>
  )
}

const StateOf = ({ agent }: { readonly agent: Agent }): ReactNode => (
  <>
    {agent.enabled ? (
      "Enabled."
    ) : (
      <Visible text={withStop(agent.disabledReason ?? "Disabled: events do not trigger it.")} />
    )}{" "}
    <Link
      to="/agents/$agentId"
      params={{ agentId: agent.id }}
      className="font-medium text-leaf underline-offset-2 hover:underline"
    >
      View definition
    </Link>
  </>
)

const tabsOf = (agent: Agent): ReadonlyArray<Tab> => [
  { id: "log", title: "Event log", content: () => <ProcessingLog agent={agent} /> },
  { id: "pending", title: "Unprocessed", content: () => <PendingEvents agent={agent} /> },
  { id: "dead", title: "Dead letters", content: () => <DeadLetters agent={agent} /> },
  { id: "why", title: "Why not triggered?", content: () => <WhyNot agent={agent} /> }
]

/**
 * One agent: how it fares, what it says, its versions, and what it would do.
 */
import type { Agent } from "@tropism/domain/agent"
import { definitionOf, leanAgent } from "@tropism/domain/agent-version"
import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { type ReactNode, useMemo, useRef, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { MovedNotice } from "../parts/moved-notice.tsx"
import { NotShown } from "../parts/not-shown.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { type Tab, Tabs } from "../parts/tabs.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentHealthQuery, agentPath, agentQuery } from "../server/agent-queries.ts"
import { isMissing } from "../server/problem.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"
import { AgentActions } from "./agent-actions.tsx"
import { AgentBacktests } from "./agent-backtests.tsx"
import { changesOf, draftOf, sentOf } from "./agent-draft.ts"
import { AgentForm } from "./agent-form.tsx"
import type { Sent } from "./draft-texts.ts"
import { AgentOverview } from "./agent-overview.tsx"
import { AgentVersions } from "./agent-versions.tsx"
import { AgentWebhooks } from "./agent-webhooks.tsx"
import { useMade } from "./use-made.ts"

export const AgentPage = (): ReactNode => {
  const { agentId = "" } = useParams({ strict: false })
  const { project } = useConsole()
  const { data: agent, error } = useQuery(agentQuery(project.id, agentId))
  const { data: health } = useQuery(agentHealthQuery(project.id, agentId))
  if (agent === undefined)
    return <NotShown title="Agent" error={error} reading="Loading agent …" to="/agents" way="All agents" />
  const missing = health?.items[0]?.modelMissing ?? null
  const isGone = isMissing(error)
  return (
    <>
      <PageHeader
        above={<Link to="/agents">Agents</Link>}
        title={
          <>
            <Visible text={agent.name} />{" "}
            <span
              data-version={agent.version}
              className="ml-1 align-middle text-sm font-normal text-ink-faint"
            >
              version {agent.version}
            </span>
          </>
        }
        lead={agent.role !== null && <Visible text={agent.role} />}
      >
        {!isGone && <AgentActions agent={agent} missing={missing} />}
      </PageHeader>
      {isGone && (
        <div className="mb-6">
          <MovedNotice>
            This agent was deleted. You see its last definition, which you can save as a new agent.
          </MovedNotice>
        </div>
      )}
      {error !== null && !isGone && <Failure error={error} hasOlder triesAgain />}
      {!isGone && !agent.enabled && (
        <p
          role="status"
          data-testid="agent-disabled"
          className="mb-6 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
        >
          This agent is disabled and is not triggered. <Visible text={agent.disabledReason ?? ""} />
        </p>
      )}
      {missing !== null && (
        <p
          role="status"
          data-testid="model-missing"
          className="mb-6 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
        >
          No model is available for this agent. <Visible text={missing} />
        </p>
      )}
      {!isGone && agent.warnings.length > 0 && <Warnings agent={agent} />}
      <Tabs key={agent.id} label="About this agent" tabs={tabsOf(agent, missing, isGone)} />
      <div className="mt-8 max-w-xl">
        <Command text={`npx tropism run ${agent.name}`} />
      </div>
    </>
  )
}

/** What of its definition does not hold as things are now. */
const Warnings = ({ agent }: { readonly agent: Agent }): ReactNode => (
  <div
    role="status"
    data-testid="agent-warnings"
    className="mb-6 rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
  >
    {agent.warnings.map(({ code, message, pointer }) => (
      <p key={pointer} data-warning={code}>
        <Visible text={message} />
      </p>
    ))}
  </div>
)

const tabsOf = (agent: Agent, missing: string | null, isGone: boolean): ReadonlyArray<Tab> => [
  { id: "overview", title: "Overview", content: () => <AgentOverview agent={agent} /> },
  {
    id: "definition",
    title: "Definition",
    content: () => <Definition agent={agent} missing={missing} isGone={isGone} />
  },
  { id: "versions", title: "Versions", count: agent.version, content: () => <AgentVersions agent={agent} /> },
  { id: "backtests", title: "Backtests", content: () => <AgentBacktests agent={agent} /> },
  ...(agent.triggerType === "webhook"
    ? [{ id: "webhooks", title: "Webhooks", content: () => <AgentWebhooks agent={agent} /> }]
    : [])
]

interface DefinitionProps {
  readonly agent: Agent
  /** Why no model can be asked for it; null where one can. */
  readonly missing: string | null
  /** Somebody has deleted it: what is written can only become a new agent. */
  readonly isGone: boolean
}

const Definition = ({ agent, missing, isGone }: DefinitionProps): ReactNode => {
  const { isAdmin } = useConsole()
  const show = useToasts()
  const { isMade, goTo } = useMade()
  /** What is edited: it stays, whoever saves another version meanwhile. */
  const [base, setBase] = useState(agent)
  /** The version that was seen last, which is saved on top of. */
  const [seen, setSeen] = useState(agent.version)
  /** How often something was written, and how much of that is saved. */
  const [touches, setTouches] = useState(0)
  const [savedTouches, setSavedTouches] = useState(0)
  const sentTouches = useRef(0)
  const isTouched = touches > savedTouches
  const [form, setForm] = useState(0)
  const follow = (to: Agent, upTo: number) => {
    setBase(to)
    setSeen(to.version)
    setSavedTouches(upTo)
  }
  const begin = (from: Agent) => {
    follow(from, touches)
    setForm(form + 1)
  }
  const initial = useMemo(() => draftOf(leanAgent(definitionOf(base))), [base])
  const { run, isBusy, error } = useWrite<Agent>(`Save ${visibleText(agent.name)}`, (after) => {
    if (after.id !== base.id) return goTo(after)
    follow(after, sentTouches.current)
    show({ tone: "done", title: "Saved", sentence: `Current version: ${after.version}.` })
  })
  const hasMoved = agent.version > seen && !isBusy
  // Where nothing was written, nothing is to be kept.
  if (hasMoved && !isTouched) begin(agent)
  const before = sentOf(initial).sent
  const save = (sent: Sent) => {
    sentTouches.current = touches
    if (isGone) return run({ path: "agents", method: "POST", body: sent })
    run({ path: agentPath(base.id), method: "PATCH", ifMatch: seen, body: changesOf(before, sent) })
  }
  if (!isAdmin)
    return (
      <>
        <p className="mb-4 text-sm text-ink-soft">Only admins can change it.</p>
        <JsonView value={leanAgent(definitionOf(agent))} label="Definition" />
      </>
    )
  return (
    <>
      {hasMoved && isTouched && (
        <div className="mb-6">
          <MovedNotice
            actions={
              <>
                <Button data-testid="keep-mine" size="small" onClick={() => setSeen(agent.version)}>
                  Keep mine, to save on top of it
                </Button>
                <Button data-testid="drop-mine" size="small" onClick={() => begin(agent)}>
                  Discard mine and start from version {agent.version}
                </Button>
              </>
            }
          >
            Someone saved version {agent.version} in the meantime; your edits are based on version{" "}
            {base.version}.
          </MovedNotice>
        </div>
      )}
      <AgentForm
        key={form}
        initial={initial}
        missing={missing}
        verb={isGone ? "Save as new agent" : "Save as new version"}
        isBusy={isBusy || isMade}
        error={error}
        goes={isGone}
        isMade={isMade}
        onSave={save}
        onTouch={() => setTouches(touches + 1)}
      />
    </>
  )
}

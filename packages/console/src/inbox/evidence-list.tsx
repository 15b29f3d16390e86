/**
 * What the agent had read before it suggested, and whether that still stands.
 *
 * What moved is on the suggestion itself. The objects are looked up, for their
 * names, only once a reviewer opens the list.
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { Evidence, SuggestionTask } from "@tropism/domain/task"
import { useQueries } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { CautionIcon, ChevronIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { objectQuery } from "../server/queries.ts"
import { judgeEvidence } from "../suggestion/staleness.ts"

interface EvidenceListProps {
  readonly projectId: string
  readonly task: SuggestionTask
}

export const EvidenceList = ({ projectId, task }: EvidenceListProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const listed = task.evidence.slice(0, limits.maxEvidence)
  const found = useQueries({
    queries: isOpen ? listed.map((evidence) => objectQuery(projectId, evidence.objectId)) : []
  })
  const items = listed.map((evidence, index) => ({
    evidence,
    current: currentOf(task, evidence, found[index]?.data)
  }))
  const movedCount = task.staleness?.evidenceChanged.length ?? 0
  if (listed.length === 0) return <span className="text-ink-faint">No objects read</span>
  return (
    <details
      open={isOpen}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
      className="group min-w-0 grow"
    >
      <summary className="flex w-fit items-center gap-1 rounded text-ink-soft hover:text-ink">
        <ChevronIcon size="small" className="transition-transform group-open:rotate-90" />
        Based on {count(task.evidence.length, "object")} read
        {movedCount > 0 && (
          <span className="ml-1.5 inline-flex items-center gap-1 font-medium text-caution-ink">
            <CautionIcon size="small" />
            {movedCount} changed since
          </span>
        )}
      </summary>
      <ul className="mt-2 grid gap-1.5 border-l-2 border-line pl-3.5">
        {(isOpen ? items : []).map(({ evidence, current }) => (
          <li
            key={`${evidence.objectId} ${evidence.version}`}
            className="flex flex-wrap items-baseline gap-x-2"
          >
            <EvidenceItem task={task} evidence={evidence} current={current} />
          </li>
        ))}
        {task.evidence.length > listed.length && (
          <li className="text-ink-faint">and {task.evidence.length - listed.length} more</li>
        )}
      </ul>
    </details>
  )
}

type Current = GraphObject | null | undefined

const currentOf = (task: SuggestionTask, evidence: Evidence, found: Current): Current =>
  task.target?.id === evidence.objectId ? task.target : found

const EvidenceItem = ({
  task,
  evidence,
  current
}: {
  readonly task: SuggestionTask
  readonly evidence: Evidence
  readonly current: Current
}): ReactNode => {
  const judgement = judgeEvidence(task, evidence)
  return (
    <>
      <span className="text-ink-faint">
        <Visible text={evidence.type} />
      </span>
      <span className="min-w-0 font-mono text-ink">
        <Visible text={current?.key ?? evidence.objectId} exact />
      </span>
      <span className="text-ink-faint">version {evidence.version}</span>
      {judgement.type === "moved" && (
        <span className="font-medium text-caution-ink">now version {judgement.currentVersion}</span>
      )}
      {judgement.type === "gone" && <span className="font-medium text-caution-ink">deleted since</span>}
    </>
  )
}

const count = (many: number, noun: string): string => `${many} ${noun}${many === 1 ? "" : "s"}`

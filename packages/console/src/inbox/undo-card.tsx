/**
 * An undo as a reviewable set of changes: each thing with what goes back, to be taken or left out.
 *
 * What its address does not name is left out, so nothing is undone before the
 * whole plan is read.
 */
import type { UndoTask } from "@tropism/domain/task"
import { undoBounds, type UndoCause, type UndoItem } from "@tropism/domain/undo"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useContext, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { drawn } from "../parts/icons.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { type PagedList, usePagedList, useReadThrough } from "../server/paged.ts"
import type { PropertyRow } from "../suggestion/property-diff.ts"
import { visibleText } from "../words/visible-text.ts"
import { LinkedTask } from "./linked-card.ts"
import { PropertyRows } from "./property-rows.tsx"
import { TaskFrame } from "./task-frame.tsx"
import { causeWords, itemWords, planSentence } from "./undo-words.ts"
import { useLookingAgain } from "./use-looking-again.ts"
import { useSettling } from "./use-settling.ts"

interface UndoCardProps {
  readonly projectId: string
  readonly task: UndoTask
  readonly canDecide: boolean
}

export const UndoCard = ({ projectId, task, canDecide }: UndoCardProps): ReactNode => {
  const { isSending, refusal, settle } = useSettling(projectId, task)
  const { ask, askingId } = useLookingAgain(projectId)
  const plan = usePagedList<UndoItem>({
    projectId,
    key: ["tasks", task.id, "items", task.digest],
    path: `tasks/${encodeURIComponent(task.id)}/items`
  })
  const { isKnown, leaveOut, leaves, toggle } = useLeavingOut(task, plan)
  const { ready } = task.payload.counts
  const taken = ready - leaveOut.length
  const undoWords = isKnown ? `Undo ${taken} of ${ready}` : "Undo …"
  const isBusy = isSending || askingId !== undefined
  return (
    <TaskFrame task={task} kind="undo" isBusy={isBusy} mark={<UndoMark />} refusal={refusal}>
      <p className="text-sm text-ink-soft">
        {planSentence(task.payload)} Of{" "}
        <Visible text={task.payload.agents.map(({ name }) => name).join(", ")} />; requested by{" "}
        <Visible text={task.payload.requestedBy} />. <CauseLink cause={task.payload.cause} />
      </p>
      {plan.error !== null && plan.error !== undefined && <Failure error={plan.error} triesAgain />}
      <ul aria-label="Plan" className="grid gap-2.5">
        {plan.rows.map((item) => (
          <li key={item.id}>
            <PlanItem
              projectId={projectId}
              item={item}
              isTaken={!leaves(item.id)}
              canDecide={canDecide}
              onToggle={toggle}
            />
          </li>
        ))}
      </ul>
      {plan.hasMore && (
        <p>
          <Button size="small" disabled={plan.isReadingMore || plan.error !== null} onClick={plan.readMore}>
            Load more
          </Button>
        </p>
      )}
      {canDecide && (
        <p className="flex flex-wrap gap-2">
          <Button
            weight="primary"
            disabled={isBusy || taken === 0 || plan.isPending || !isKnown}
            aria-label={`${undoWords}: ${visibleText(task.title)}`}
            onClick={() => settle({ how: "approve", leaveOut })}
          >
            {undoWords}
          </Button>
          <Button disabled={isBusy} onClick={() => settle({ how: "reject" })}>
            Discard undo
          </Button>
          <Button weight="quiet" disabled={isBusy} onClick={() => ask(task)}>
            Refresh plan
          </Button>
        </p>
      )}
    </TaskFrame>
  )
}

/** What is left out: all but what the address names, until somebody says otherwise. */
const useLeavingOut = ({ id: taskId }: UndoTask, plan: PagedList<UndoItem>) => {
  const [address] = useAddress()
  const linkedId = useContext(LinkedTask)
  const only = address["only"]?.split(",").filter((id) => id !== "") ?? []
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map())
  const isNarrowed = linkedId === taskId && only.length > 0
  useReadThrough(plan, isNarrowed ? undoBounds.maxEntities : 0)
  const leaves = (id: string): boolean => chosen.get(id) ?? (isNarrowed && !only.includes(id))
  return {
    /** Of a plan that is read in part nobody knows what is left out. */
    isKnown: !isNarrowed || plan.isWhole,
    leaves,
    leaveOut: plan.rows.filter(({ id, status }) => status === "ready" && leaves(id)).map(({ id }) => id),
    toggle: (id: string) => setChosen((before) => new Map([...before, [id, !leaves(id)]]))
  }
}

interface PlanItemProps {
  readonly projectId: string
  readonly item: UndoItem
  readonly isTaken: boolean
  readonly canDecide: boolean
  readonly onToggle: (id: string) => void
}

const PlanItem = ({ item, isTaken, canDecide, onToggle }: PlanItemProps): ReactNode => {
  const name = `${item.objectType} ${item.key ?? item.id}`
  const isReady = item.status === "ready"
  return (
    <div
      data-status={item.status}
      className={`grid gap-2 rounded-lg border border-line p-3 ${isTaken || !isReady ? "" : "opacity-70"}`}
    >
      <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1 text-xs">
        {canDecide && isReady && (
          <input
            type="checkbox"
            checked={isTaken}
            onChange={() => onToggle(item.id)}
            aria-label={`Undo ${visibleText(name)}`}
            className="size-4 accent-leaf"
          />
        )}
        {item.entityType === "graphObject" ? (
          <Link
            to="/objects/$objectId"
            params={{ objectId: item.id }}
            className="rounded font-mono underline-offset-2 hover:underline"
          >
            <Visible text={name} exact />
          </Link>
        ) : (
          <span className="font-mono">
            <Visible text={name} exact />
          </span>
        )}
        <span className={isReady ? "text-ink-soft" : "font-medium text-caution-ink"}>
          {isTaken || !isReady ? itemWords(item) : "left out"}
        </span>
      </p>
      {item.reason !== "" && (
        <p className="text-xs text-ink-faint">
          <Visible text={item.reason} />
        </p>
      )}
      {item.properties.length > 0 && (
        <PropertyRows rows={rowsOf(item)} task={{ staleness: null }} seen={undefined} />
      )}
    </div>
  )
}

/** What stands there now, and what was before. */
const rowsOf = ({ properties }: UndoItem): ReadonlyArray<PropertyRow> =>
  properties.map((each) => {
    const kind =
      each.status !== "ready" || (each.now === undefined && each.back === undefined)
        ? "kept"
        : each.now === undefined
          ? "added"
          : each.back === undefined
            ? "removed"
            : "changed"
    return {
      path: [each.property],
      kind,
      ...(each.now !== undefined && { before: each.now }),
      ...(kind === "kept"
        ? each.now !== undefined && { after: each.now }
        : each.back !== undefined && { after: each.back })
    }
  })

const CauseLink = ({ cause }: { readonly cause: UndoCause }): ReactNode => {
  const to =
    cause.type === "run"
      ? ({ to: "/runs/$runId", params: { runId: cause.runId } } as const)
      : cause.type === "chain"
        ? ({ to: "/chains/$rootEventId", params: { rootEventId: cause.rootEventId } } as const)
        : ({ to: "/agents/$agentId", params: { agentId: cause.agentId } } as const)
  return (
    <Link {...to} className="rounded underline underline-offset-2">
      {causeWords[cause.type]}
    </Link>
  )
}

const BackIcon = drawn(<path d="M4 6h6a3 3 0 0 1 0 6H7M4 6l2.5-2.5M4 6l2.5 2.5" />)

const UndoMark = (): ReactNode => (
  <span
    title="Undo"
    className="grid size-7 shrink-0 place-items-center rounded-lg bg-removed text-removed-ink"
  >
    <BackIcon />
    <span className="sr-only">Undo: </span>
  </span>
)

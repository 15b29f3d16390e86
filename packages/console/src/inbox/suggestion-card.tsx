/**
 * One suggestion with everything a decision needs: what, from what to what, why, how sure, on what evidence.
 *
 * It shows and asks; deciding is the page's, through the callbacks.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { memo, type ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { CautionIcon, LinkIcon, MinusIcon, PencilIcon, PlusIcon, UnlinkIcon } from "../parts/icons.tsx"
import { LongText } from "../parts/long-text.tsx"
import { useNearView } from "../parts/near-view.ts"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { historyQuery } from "../server/queries.ts"
import { changeVerbs } from "../suggestion/change-words.ts"
import { editFields } from "../suggestion/edit-fields.ts"
import { requestedRows, suggestionRows } from "../suggestion/property-diff.ts"
import { baseOf, isDenied, isGone, isLikelyRefused } from "../suggestion/staleness.ts"
import { visibleText } from "../words/visible-text.ts"
import { AgentNotice } from "./agent-notice.tsx"
import { Confidence } from "./confidence.tsx"
import { EarlierRevisions } from "./earlier-revisions.tsx"
import { EvidenceList } from "./evidence-list.tsx"
import type { Decision } from "./inbox-state.ts"
import { cardElementId } from "./linked-card.ts"
import { LookAgain } from "./look-again.tsx"
import { PropertyRows } from "./property-rows.tsx"
import { StaleNotice } from "./stale-notice.tsx"
import { SubjectLine } from "./subject-line.tsx"
import { TaintNotice } from "./taint-notice.tsx"
import { WaitingWords } from "./waiting-words.tsx"

export interface SuggestionActions {
  readonly onEnter: (id: string) => void
  readonly onToggle: (id: string) => void
  readonly onApprove: (task: SuggestionTask) => void
  readonly onReject: (task: SuggestionTask) => void
  readonly onEdit: (task: SuggestionTask) => void
  readonly onLookAgain: (task: SuggestionTask) => void
}

interface SuggestionCardProps {
  readonly projectId: string
  readonly task: SuggestionTask
  /** Whether the card is among the first, which are drawn whole at once. */
  readonly isNearTop: boolean
  readonly isCurrent: boolean
  readonly isSelected: boolean
  readonly canDecide: boolean
  readonly deciding: Decision | undefined
  /** Whether the agent is just being asked to look again. */
  readonly isAsking: boolean
  readonly refusal: string | undefined
  readonly actions: SuggestionActions
}

export const SuggestionCard = memo((props: SuggestionCardProps): ReactNode => {
  const { projectId, task, isCurrent, isSelected, canDecide, deciding, actions } = props
  const [isNear, watch] = useNearView(props.isNearTop)
  const titleId = `${cardElementId(task.id)}-title`
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the focus only says which card is current; every action has a control of its own
    <article
      id={cardElementId(task.id)}
      data-number={task.number}
      ref={watch}
      tabIndex={-1}
      aria-labelledby={titleId}
      aria-busy={deciding !== undefined}
      aria-current={isCurrent}
      onFocus={() => actions.onEnter(task.id)}
      className={`scroll-my-24 rounded-2xl border bg-surface shadow-card transition-[border-color,opacity] duration-150 focus-visible:-outline-offset-1 ${
        isCurrent ? "border-leaf ring-1 ring-leaf" : "border-line"
      } ${deciding === undefined ? "" : "opacity-60"}`}
    >
      {isNear || isCurrent ? (
        <>
          <CardHead
            task={task}
            titleId={titleId}
            isSelected={isSelected}
            canDecide={canDecide}
            actions={actions}
          >
            <SubjectLine projectId={projectId} task={task} />
          </CardHead>
          <CardBody {...props} />
        </>
      ) : (
        <h3 id={titleId} className="min-h-60 p-5 text-base font-semibold wrap-anywhere">
          {visibleText(task.title)}
        </h3>
      )}
    </article>
  )
})

const kindIcons = {
  create: <PlusIcon />,
  update: <PencilIcon />,
  delete: <MinusIcon />,
  createRelationship: <LinkIcon />,
  updateRelationship: <PencilIcon />,
  deleteRelationship: <UnlinkIcon />
} as const

const kindColours = {
  create: "bg-added text-added-ink",
  update: "bg-sunken text-ink-soft",
  delete: "bg-removed text-removed-ink",
  createRelationship: "bg-added text-added-ink",
  updateRelationship: "bg-sunken text-ink-soft",
  deleteRelationship: "bg-removed text-removed-ink"
} as const

/** The mark and the word of what a suggestion does. */
export const KindMark = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const kind = task.payload.suggestedChanges.type
  return (
    <span
      title={changeVerbs[kind]}
      className={`grid size-7 shrink-0 place-items-center rounded-lg ${kindColours[kind]}`}
    >
      {kindIcons[kind]}
      <span className="sr-only">{changeVerbs[kind]}: </span>
    </span>
  )
}

interface CardHeadProps {
  readonly task: SuggestionTask
  readonly titleId: string
  readonly isSelected: boolean
  readonly canDecide: boolean
  readonly actions: SuggestionActions
  readonly children: ReactNode
}

const CardHead = ({ task, titleId, isSelected, canDecide, actions, children }: CardHeadProps): ReactNode => (
  <header className="flex flex-wrap items-start gap-3 px-4 pt-4 sm:flex-nowrap sm:gap-3.5 sm:px-5 sm:pt-5">
    {canDecide && (
      <label className="-m-2 grid size-11 shrink-0 place-items-center">
        <input
          type="checkbox"
          checked={isSelected}
          onChange={() => actions.onToggle(task.id)}
          aria-label={`Select ${visibleText(task.title)}`}
          className="size-4 accent-leaf"
        />
      </label>
    )}
    <KindMark task={task} />
    <div className="order-last min-w-0 grow basis-full sm:order-none sm:basis-auto">
      <h3 id={titleId} className="text-base font-semibold text-pretty">
        <Visible text={task.title} />
      </h3>
      <div className="mt-0.5">{children}</div>
    </div>
    <p className="ml-auto flex h-7 shrink-0 items-center gap-x-2.5 text-xs text-ink-faint">
      <Link
        to="/tasks/$taskId"
        params={{ taskId: task.id }}
        className="rounded text-center hover:text-ink hover:underline pointer-coarse:min-w-6"
        aria-label={`Link to suggestion ${task.number}`}
      >
        #{task.number}
      </Link>
      <TimeAgo instant={task.createdAt} />
    </p>
  </header>
)

type CardBodyProps = Omit<SuggestionCardProps, "isNearTop" | "isSelected">

const CardBody = ({
  projectId,
  task,
  isCurrent,
  canDecide,
  deciding,
  isAsking,
  refusal,
  actions
}: CardBodyProps): ReactNode => {
  const { target, baseVersion, payload, staleness } = task
  const hasMoved = target !== null && (staleness?.conflicts.length ?? 0) > 0
  const history = useQuery({
    ...historyQuery(projectId, target?.id ?? "", target?.version ?? 0),
    enabled: hasMoved
  }).data?.items
  const rows = isGone(task) ? requestedRows(payload.suggestedChanges) : suggestionRows(task)
  return (
    <div className="grid grid-cols-1 gap-3.5 px-4 pt-3.5 pb-4 sm:px-5 sm:pb-5">
      <StaleNotice task={task} />
      <AgentNotice task={task} />
      <LookAgain
        task={task}
        hasKeys={isCurrent}
        canDecide={canDecide}
        isAsking={isAsking}
        onLookAgain={actions.onLookAgain}
      />
      <TaintNotice task={task} />
      {rows.length > 0 && (
        <PropertyRows rows={rows} task={task} seen={baseOf(history, baseVersion)?.properties} />
      )}
      <Reasons task={task} />
      {refusal !== undefined && !(task.denial !== null && refusal.includes(task.denial)) && (
        <p role="status" className="flex items-start gap-2 text-xs font-medium text-caution-ink">
          <CautionIcon className="mt-0.5" />
          <span>{refusal}</span>
        </p>
      )}
      <footer className="flex flex-wrap items-start gap-x-6 gap-y-3 sm:flex-nowrap">
        <div className="flex min-w-0 grow basis-full flex-wrap items-start gap-x-5 gap-y-2 text-xs sm:basis-0 sm:pt-2">
          <Confidence value={payload.confidence} />
          <WaitingWords task={task} />
          <Link
            to="/runs/$runId"
            params={{ runId: task.runId }}
            className="rounded text-ink-soft underline-offset-2 hover:text-ink hover:underline"
          >
            View run
          </Link>
          <EvidenceList projectId={projectId} task={task} />
          <EarlierRevisions projectId={projectId} task={task} />
        </div>
        {canDecide && (
          <CardActions
            task={task}
            deciding={deciding}
            hasKeys={isCurrent}
            cannotApprove={isGone(task) || isDenied(task)}
            prefersReject={isLikelyRefused(task)}
            actions={actions}
          />
        )}
      </footer>
    </div>
  )
}

/** The agent's own words; a description that says the same is not said twice. */
const Reasons = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const { reasoning } = task.payload
  const description = task.description === reasoning ? null : task.description
  if (reasoning === undefined && description === null) {
    return <p className="text-sm text-ink-faint">The agent gave no reason.</p>
  }
  return (
    <div className="grid max-w-[68ch] gap-2 text-sm whitespace-pre-line text-ink-soft">
      {description !== null && (
        <p>
          <LongText text={description} />
        </p>
      )}
      {reasoning !== undefined && (
        <p>
          <LongText text={reasoning} />
        </p>
      )}
    </div>
  )
}

interface CardActionsProps {
  readonly task: SuggestionTask
  readonly deciding: Decision | undefined
  /** Whether the keys act on this card: no other shows them. */
  readonly hasKeys: boolean
  /** What it would change is gone, or its agent may not do this any more; the notices above say which. */
  readonly cannotApprove: boolean
  readonly prefersReject: boolean
  readonly actions: SuggestionActions
}

const CardActions = ({
  task,
  deciding,
  hasKeys,
  cannotApprove,
  prefersReject,
  actions
}: CardActionsProps): ReactNode => {
  const isBusy = deciding !== undefined
  const approve = (
    <Button
      key="approve"
      weight={prefersReject ? "plain" : "primary"}
      shortcut="A"
      isShortcutElsewhere={!hasKeys}
      disabled={isBusy || cannotApprove}
      onClick={() => actions.onApprove(task)}
    >
      {deciding === "approve" ? "Approving…" : "Approve"}
      <Named task={task} />
    </Button>
  )
  const reject = (
    <Button
      key="reject"
      weight={prefersReject ? "primary" : "plain"}
      shortcut="R"
      isShortcutElsewhere={!hasKeys}
      disabled={isBusy}
      onClick={() => actions.onReject(task)}
    >
      {deciding === "reject" ? "Rejecting…" : "Reject"}
      <Named task={task} />
    </Button>
  )
  const edit = (editFields(task.payload.suggestedChanges)?.length ?? 0) > 0 && (
    <Button
      key="edit"
      shortcut="E"
      isShortcutElsewhere={!hasKeys}
      disabled={isBusy || cannotApprove}
      onClick={() => actions.onEdit(task)}
    >
      Edit
      <Named task={task} />
    </Button>
  )
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-2">
      {prefersReject ? [reject, edit, approve] : [approve, edit, reject]}
    </div>
  )
}

/** What a button is about, for who does not see where it stands. */
const Named = ({ task }: { readonly task: SuggestionTask }): ReactNode => (
  <span className="sr-only"> {visibleText(task.title)}</span>
)

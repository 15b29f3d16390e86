/**
 * The list of suggestions, one section for each agent and kind.
 */
import type { ReactNode, RefObject } from "react"
import { Visible } from "../parts/visible.tsx"
import { kindWords } from "../suggestion/change-words.ts"
import type { SuggestionGroup } from "../suggestion/group-suggestions.ts"
import type { InboxState } from "./inbox-state.ts"
import { RejectAll } from "./reject-all.tsx"
import { type SuggestionActions, SuggestionCard } from "./suggestion-card.tsx"

interface SuggestionGroupsProps {
  /** The element of the whole list. */
  readonly list: RefObject<HTMLDivElement | null>
  readonly projectId: string
  readonly groups: ReadonlyArray<SuggestionGroup>
  readonly inbox: InboxState
  /** The card on which the keys act. */
  readonly markedId: string | undefined
  readonly canDecide: boolean
  /** The suggestion that an agent is just being asked to look at again. */
  readonly askingId: string | undefined
  readonly actions: SuggestionActions
  readonly onSelectAll: (ids: ReadonlyArray<string>, isSelected: boolean) => void
}

/** So many cards are drawn whole at once; the others when they come near the view. */
const drawnAtOnce = 8

export const SuggestionGroups = ({ groups, list, ...rest }: SuggestionGroupsProps): ReactNode => {
  const ids = groups.flatMap((group) => group.tasks.map((task) => task.id))
  const firstIds = new Set(ids.slice(0, drawnAtOnce))
  const counts = new Map<string, number>()
  for (const { agentId, tasks } of groups) counts.set(agentId, (counts.get(agentId) ?? 0) + tasks.length)
  return (
    <div ref={list} className="grid grid-cols-1 gap-10">
      {groups.map((group, index) => (
        <Group
          key={group.id}
          group={group}
          isRejectable={(counts.get(group.agentId) ?? 0) > 1 && groups[index + 1]?.agentId !== group.agentId}
          firstIds={firstIds}
          {...rest}
        />
      ))}
    </div>
  )
}

interface GroupProps extends Omit<SuggestionGroupsProps, "groups" | "list"> {
  readonly group: SuggestionGroup
  /** Whether all of the agent is rejected from here: below the last of its groups, where it has more than one suggestion. */
  readonly isRejectable: boolean
  readonly firstIds: ReadonlySet<string>
}

const Group = ({
  group,
  isRejectable,
  firstIds,
  projectId,
  inbox,
  markedId,
  canDecide,
  askingId,
  actions,
  onSelectAll
}: GroupProps): ReactNode => {
  const headingId = `group-${group.id.replaceAll(" ", "-")}`
  const ids = group.tasks.map((task) => task.id)
  const isWholeSelected = ids.every((id) => inbox.selected.has(id))
  return (
    <section aria-labelledby={headingId} data-kind={group.type} className="min-w-0">
      <header className="mb-3 flex items-baseline justify-between gap-4 px-1">
        <h2 id={headingId} className="min-w-0 text-base">
          <span className="font-semibold">
            <Visible text={group.agentName} />
          </span>{" "}
          <span className="text-ink-soft">suggests {kindWords[group.type]}</span>
          <span className="ml-2.5 rounded-full bg-line/60 px-2 py-0.5 text-xs text-ink-soft">
            {group.tasks.length}
          </span>
        </h2>
        {canDecide && ids.length > 1 && (
          <button
            type="button"
            onClick={() => onSelectAll(ids, !isWholeSelected)}
            className="shrink-0 rounded text-xs text-ink-soft underline-offset-2 hover:text-ink hover:underline"
          >
            {isWholeSelected ? "Select none" : "Select all"}
            <span className="sr-only"> of this group</span>
          </button>
        )}
      </header>
      <ol className="grid grid-cols-1 gap-3">
        {group.tasks.map((task) => (
          <li key={task.id} className="enter min-w-0">
            <SuggestionCard
              projectId={projectId}
              task={task}
              isNearTop={firstIds.has(task.id)}
              isCurrent={markedId === task.id}
              isSelected={inbox.selected.has(task.id)}
              canDecide={canDecide}
              deciding={inbox.deciding.get(task.id)}
              isAsking={askingId === task.id}
              refusal={inbox.refusals.get(task.id)?.sentence}
              actions={actions}
            />
          </li>
        ))}
      </ol>
      {canDecide && isRejectable && (
        <p className="mt-3 px-1 text-right">
          <RejectAll agentId={group.agentId} agentName={group.agentName} />
        </p>
      )}
    </section>
  )
}

/**
 * Says before the click that the graph moved since the agent looked.
 */
import type { StalenessState } from "@tropism/domain/staleness"
import type { SuggestionTask } from "@tropism/domain/task"
import type { ReactNode } from "react"
import { CautionIcon, ClockIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { placeName } from "../words/place-name.ts"

export const StaleNotice = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const { baseVersion, staleness } = task
  if (staleness === null || staleness.state === "fresh") return null
  const what = task.relationship === null ? "object" : "relationship"
  const versions = `from version ${baseVersion} to ${staleness.currentVersion}`
  if (staleness.state === "gone") {
    return (
      <Caution state="gone" title="Gone">
        The object was deleted after this suggestion. It cannot be applied; reject it to remove it.
      </Caution>
    )
  }
  if (staleness.takenBy !== null) {
    return (
      <Caution state="outdated" title="Outdated">
        This already exists.
      </Caution>
    )
  }
  if (staleness.added.length > 0) {
    return (
      <Caution state="outdated" title="Outdated">
        Since this suggestion, <Names names={staleness.added.map(({ type }) => type)} /> was connected to the
        object and would be deleted with it. Approval will likely fail.
      </Caution>
    )
  }
  if (staleness.state === "outdated") {
    return (
      <Caution state="outdated" title="Outdated">
        The {what} changed {versions}, and <Names names={staleness.conflicts.map(placeName)} /> changed, which
        this suggestion also changes. Approval will likely fail.
      </Caution>
    )
  }
  return (
    <Note state="rebasable" title="Stale">
      The {what} changed {versions} since this suggestion.{" "}
      {staleness.moved.length === 0 ? (
        "Its properties are the same as before."
      ) : (
        <>
          Only <Names names={staleness.moved.map(placeName)} /> changed; this suggestion does not touch it.
        </>
      )}
    </Note>
  )
}

const maxNames = 6

const Names = ({ names }: { readonly names: ReadonlyArray<string> }): ReactNode => (
  <>
    {names.slice(0, maxNames).map((name, index) => (
      <span key={name}>
        {index > 0 && ", "}
        <span className="font-mono text-[0.92em] font-medium">
          <Visible text={name} exact />
        </span>
      </span>
    ))}
    {names.length > maxNames && ` and ${names.length - maxNames} more`}
  </>
)

interface NoticeProps {
  readonly state: StalenessState
  readonly title: string
  readonly children: ReactNode
}

const Caution = ({ state, title, children }: NoticeProps): ReactNode => (
  <p
    data-staleness={state}
    className="flex items-start gap-2.5 rounded-lg border border-caution-line bg-caution px-3.5 py-2.5 text-xs text-caution-ink"
  >
    <CautionIcon className="mt-0.5" />
    <span className="min-w-0">
      <strong className="font-semibold">{title}.</strong> {children}
    </span>
  </p>
)

const Note = ({ state, title, children }: NoticeProps): ReactNode => (
  <p
    data-staleness={state}
    className="flex items-start gap-2.5 rounded-lg border border-line bg-sunken px-3.5 py-2.5 text-xs text-ink-soft"
  >
    <ClockIcon className="mt-0.5" />
    <span className="min-w-0">
      <strong className="font-semibold text-ink">{title}.</strong> {children}
    </span>
  </p>
)

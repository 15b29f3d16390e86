/**
 * Says before the click that the graph moved since the agent looked.
 */
import type { ReactNode } from "react"
import { CautionIcon, ClockIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import type { Moved, Staleness } from "../suggestion/staleness.ts"

export const StaleNotice = ({ staleness }: { readonly staleness: Staleness }): ReactNode => {
  if (staleness.type === "fresh") return null
  if (staleness.type === "gone") {
    return (
      <Caution title="Gone">
        The object was deleted after this was suggested. Approving can do nothing; rejecting clears it away.
      </Caution>
    )
  }
  const versions = `from version ${staleness.baseVersion} to ${staleness.currentVersion}`
  if (staleness.isOutdated) {
    return (
      <Caution title="Outdated">
        The object went {versions} since the agent looked
        {staleness.conflicts.length > 0 && (
          <>
            , and <Names names={staleness.conflicts} /> moved, which this suggestion touches
          </>
        )}
        . Approving is likely to be refused.
      </Caution>
    )
  }
  return (
    <Note title="Stale">
      The object went {versions} since the agent looked. {otherWords(staleness)}
    </Note>
  )
}

const otherWords = ({ moved }: Moved): ReactNode =>
  moved === undefined ? null : moved.length === 0 ? (
    "Its properties are the same again."
  ) : (
    <>
      Only <Names names={moved} /> moved; what this suggestion touches did not.
    </>
  )

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
  readonly title: string
  readonly children: ReactNode
}

const Caution = ({ title, children }: NoticeProps): ReactNode => (
  <p className="flex items-start gap-2.5 rounded-lg border border-caution-line bg-caution px-3.5 py-2.5 text-xs text-caution-ink">
    <CautionIcon className="mt-0.5" />
    <span className="min-w-0">
      <strong className="font-semibold">{title}.</strong> {children}
    </span>
  </p>
)

const Note = ({ title, children }: NoticeProps): ReactNode => (
  <p className="flex items-start gap-2.5 rounded-lg border border-line bg-sunken px-3.5 py-2.5 text-xs text-ink-soft">
    <ClockIcon className="mt-0.5" />
    <span className="min-w-0">
      <strong className="font-semibold text-ink">{title}.</strong> {children}
    </span>
  </p>
)

/**
 * A dry run event by event: what was suggested then, and what the agent would do now.
 */
import type { Backtest, BacktestResult, Likeness } from "@tropism/domain/backtest"
import type { Change } from "@tropism/domain/change"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DifferenceList } from "../parts/difference-list.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Failure } from "../parts/failure.tsx"
import { NamedObjectLink } from "../parts/named-object-link.tsx"
import { Visible } from "../parts/visible.tsx"
import { changeVerbs, confidenceText } from "../suggestion/change-words.ts"
import { requestedRows } from "../suggestion/property-diff.ts"
import { countText } from "../words/amounts.ts"
import { useBacktestResults } from "./use-backtest-results.ts"

interface BacktestResultsProps {
  readonly backtest: Backtest
}

export const BacktestResults = ({ backtest }: BacktestResultsProps): ReactNode => {
  const { project } = useConsole()
  const { results, error, hasMore, isReadingMore, readMore } = useBacktestResults(project.id, backtest)
  return (
    <>
      {error !== null && <Failure error={error} hasOlder={results.length > 0} triesAgain />}
      <ol aria-label="Events" className="m-0 mt-4 grid list-none gap-5 p-0">
        {results.map((result) => (
          <li key={result.number}>
            <OneEvent result={result} />
          </li>
        ))}
      </ol>
      {hasMore && (
        <p className="mt-5 flex flex-wrap items-center gap-3 text-sm text-ink-soft">
          <Button data-testid="more-events" size="small" disabled={isReadingMore} onClick={readMore}>
            Show more events
          </Button>
          The first {results.length} of {countText(backtest.events.chosen, "event")}.
        </p>
      )}
    </>
  )
}

interface ResultProps {
  readonly result: BacktestResult
}

/** What happened, to what, and what the agent made of it. */
const OneEvent = ({ result }: ResultProps): ReactNode => (
  <>
    <p className="mb-1.5 text-sm">
      {result.subject !== null && (
        <>
          <NamedObjectLink object={result.subject} />:{" "}
        </>
      )}
      <Link to="/events/$eventId" params={{ eventId: result.event.id }} className={linkClass}>
        <Visible text={`${result.event.objectType} ${result.event.type}`} />
      </Link>
      {result.runId !== null && (
        <>
          ,{" "}
          <Link to="/runs/$runId" params={{ runId: result.runId }} className={linkClass}>
            its run: {result.runStatus}
          </Link>
        </>
      )}
    </p>
    {result.errorMessage !== null && (
      <p className="mb-2 text-sm text-removed-ink">
        <Visible text={result.errorMessage} />
      </p>
    )}
    <Now result={result} />
    <Earlier result={result} />
  </>
)

/** What it would do now. */
const Now = ({ result: { event, now, runStatus } }: ResultProps): ReactNode =>
  now.length === 0 ? (
    runStatus === "completed" && <p className="text-sm text-ink-soft">No changes</p>
  ) : (
    <ul aria-label="Suggested changes" className="m-0 grid list-none gap-3 p-0">
      {now.map(({ change, confidence, reasoning, isNew }, index) => (
        <li key={index} className="text-sm">
          <p className="mb-1">
            <Would change={change} changedId={event.objectId} />
            {confidence !== null && `, ${confidenceText(confidence)}`}
            {isNew && <span className="text-ink-soft"> (new: not suggested in the original run)</span>}
          </p>
          {reasoning !== null && (
            <p className="mb-1.5 text-ink-soft">
              <LongText text={reasoning} />
            </p>
          )}
          <Asked change={change} />
        </li>
      ))}
    </ul>
  )

/** What a change asks for, property by property. */
const Asked = ({ change }: { readonly change: Change }): ReactNode => {
  const rows = requestedRows(change)
  return (
    rows.length > 0 && (
      <DifferenceList
        isAfterAlone
        rows={rows.map(({ path, after }) => ({
          name: path.join(" › "),
          ...(after === undefined ? {} : { after })
        }))}
      />
    )
  )
}

/** What it suggested when it happened, what became of that, and whether it would say it again. */
const Earlier = ({ result: { earlier } }: ResultProps): ReactNode =>
  earlier.length > 0 && (
    <ul aria-label="Original suggestions" className="m-0 mt-2 list-none p-0 text-sm text-ink-soft">
      {earlier.map(({ taskId, number, status, isEdited, now }) => (
        <li key={taskId}>
          The original run suggested{" "}
          <Link to="/tasks/$taskId" params={{ taskId }} className={linkClass}>
            #{number}
          </Link>
          , {isEdited ? "edited and approved" : decisionWords[status]}
          {now !== null && `; ${likenessWords[now]}`}.
        </li>
      ))}
    </ul>
  )

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

interface WouldProps {
  readonly change: Change
  /** The object whose change it was given. */
  readonly changedId: string
}

/** What it would do, and to what, which is a link. */
const Would = ({ change, changedId }: WouldProps): ReactNode => {
  const verb = changeVerbs[change.type]
  if (change.type === "create")
    return <Visible text={`${verb} ${change.objectType}${change.key === null ? "" : ` ${change.key}`}`} />
  if (change.type === "createRelationship") return <Visible text={`${verb} by ${change.relationship.type}`} />
  if (!("objectId" in change)) return `${verb} the relationship`
  return (
    <>
      {verb}{" "}
      <Link to="/objects/$objectId" params={{ objectId: change.objectId }} className={linkClass}>
        {change.objectId === changedId ? "the changed object" : `the object …${change.objectId.slice(-8)}`}
      </Link>
    </>
  )
}

const decisionWords: Readonly<Record<BacktestResult["earlier"][number]["status"], string>> = {
  pending: "not reviewed",
  completed: "approved",
  rejected: "rejected",
  expired: "expired"
}

const likenessWords: Readonly<Record<Likeness, string>> = {
  same: "same suggestion again",
  edited: "suggests the edited version",
  different: "different suggestion for the same target",
  none: "no longer suggested"
}

/**
 * A run along its time: waits, requests to the model with their tries, tool calls, and the gaps between.
 */
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useNow } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { modelCallsQuery, openRequestQuery, runToolCallsQuery } from "../server/run-queries.ts"
import { durationText } from "../words/durations.ts"
import { stepHeads } from "./flow-step-words.ts"
import { type Break, breaksOf, lengthOf, placeIn } from "./timeline-scale.ts"
import { type Span, spansOf, spanText, withGaps } from "./timeline.ts"

export const RunTimeline = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const now = useNow()
  const refetchInterval = run.completedAt === null ? limits.refreshIntervalMs : (false as const)
  const calls = useQuery({ ...modelCallsQuery(project.id, run.id), refetchInterval })
  const tools = useQuery({ ...runToolCallsQuery(project.id, run.id), refetchInterval })
  const open = useQuery({ ...openRequestQuery(project.id, run.id), refetchInterval })
  const error = calls.error ?? tools.error
  if (calls.data === undefined || tools.data === undefined)
    return error === null ? <Skeleton label="Loading timeline …" /> : <Failure error={error} />
  const request = open.data?.request ?? null
  const spans = withGaps(spansOf(run, calls.data.items, tools.data.items, now, request))
  const whole = Math.max(...spans.map(({ endMs }) => endMs))
  const breaks = breaksOf(spans, whole)
  const heads = stepHeads(spans.map(({ flow }) => flow))
  const isCut = calls.data.nextCursor !== null || tools.data.nextCursor !== null
  return (
    <>
      <ol aria-label="Timeline" className="m-0 list-none rounded-xl border border-line bg-surface p-2">
        {spans.map((span, place) => (
          <Line key={span.key} span={span} flowHead={heads.get(place)} whole={whole} breaks={breaks} />
        ))}
      </ol>
      <p className="mt-2 flex justify-between gap-3 text-2xs text-ink-faint">
        <span>created</span>
        {breaks.length > 0 && (
          <span data-testid="not-to-scale" className="text-center">
            Not to scale: waited {durationText(lengthOf(breaks))} (axis compressed)
          </span>
        )}
        <span>{durationText(whole)}</span>
      </p>
      {isCut && <p className="mt-2 text-xs text-ink-soft">More events are in the log.</p>}
    </>
  )
}

const colours: Readonly<Record<Span["type"], string>> = {
  wait: "border-ink-faint bg-sunken",
  model: "border-leaf bg-leaf-soft",
  tool: "border-caution-line bg-caution"
}

interface LineProps {
  readonly span: Span
  /** The step of the flow that begins with it. */
  readonly flowHead: string | undefined
  readonly whole: number
  readonly breaks: ReadonlyArray<Break>
}

const Line = ({ span, flowHead, whole, breaks }: LineProps): ReactNode => {
  const { start, width } = placeIn(span, whole, breaks)
  const colour = span.hasFailed ? "border-removed-ink bg-removed" : colours[span.type]
  return (
    <li
      data-state={span.isOpen ? "open" : span.hasFailed ? "failed" : "done"}
      className="relative grid items-center gap-x-4 gap-y-0.5 rounded px-2 py-1.5 hover:bg-sunken sm:grid-cols-[minmax(8rem,14rem)_minmax(0,1fr)]"
    >
      {flowHead !== undefined && (
        <span className="col-span-full mt-2 text-xs font-semibold [overflow-wrap:anywhere]">
          <Visible text={flowHead} />
        </span>
      )}
      <span className="min-w-0 text-xs [overflow-wrap:anywhere]">
        <span className="font-medium">
          {span.event === undefined ? (
            <Visible text={span.label} />
          ) : (
            <Link
              to="."
              search={(before) => ({ ...before, tab: "log", event: span.event })}
              resetScroll={false}
              className="underline-offset-2 after:absolute after:inset-0 hover:underline"
            >
              <Visible text={span.label} />
            </Link>
          )}
        </span>{" "}
        <span className={span.hasFailed ? "text-removed-ink" : "text-ink-soft"}>
          <Visible text={spanText(span)} />
        </span>
      </span>
      <span aria-hidden="true" className="relative block h-4 min-w-0">
        {breaks.map((each) => (
          <BreakMark key={each.startMs} of={each} span={span} place={placeIn(each, whole, breaks)} />
        ))}
        <span
          data-bar={span.type}
          className={`absolute inset-y-0 min-w-1 rounded border ${colour} ${span.isOpen ? "border-dashed" : ""}`}
          style={{ left: percent(start), width: percent(width) }}
        />
      </span>
    </li>
  )
}

const percent = (part: number): string => `${part * 100}%`

interface BreakMarkProps {
  readonly of: Break
  readonly span: Span
  readonly place: ReturnType<typeof placeIn>
}

/** A break goes through every line; the lines that waited say beside it for how long. */
const BreakMark = ({ of, span, place: { start, width } }: BreakMarkProps): ReactNode => {
  const hasWaited = span.type === "wait" && span.startMs < of.endMs && span.endMs > of.startMs
  const isLate = start + width > 0.5
  return (
    <>
      <span
        className="absolute -inset-y-1.5 border-x border-dashed border-line-strong"
        style={{ left: percent(start), width: percent(width) }}
      />
      {hasWaited && (
        <span
          data-testid="waited"
          className="absolute inset-y-0 z-10 px-1.5 text-2xs leading-4 whitespace-nowrap text-ink-soft"
          style={isLate ? { right: percent(1 - start) } : { left: percent(start + width) }}
        >
          waited {durationText(of.endMs - of.startMs)}
        </span>
      )}
    </>
  )
}

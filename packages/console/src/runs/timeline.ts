/**
 * A run as spans of time: its wait for a worker, each request to a model with its tries, each tool call.
 *
 * Pure. Times are milliseconds since the run was made; what is still going on
 * ends at the present and says that it is open.
 */
import type { ToolCallRecord } from "@tropism/api/runs-api"
import type { ModelCall, OpenRequest } from "@tropism/domain/model-call"
import type { PauseReason, Run } from "@tropism/domain/run"
import { limits } from "../limits.ts"
import { durationText } from "../words/durations.ts"
import { flowStepText } from "./flow-step-words.ts"

export interface Span {
  readonly key: string
  readonly type: "wait" | "model" | "tool"
  readonly label: string
  readonly startMs: number
  readonly endMs: number
  /** It goes on, or waits. */
  readonly isOpen: boolean
  readonly hasFailed: boolean
  /** What to know of it besides its time; empty is nothing. */
  readonly note: string
  /** The step of the flow that it was for; nothing where the flow is single. */
  readonly flow?: string | undefined
  /** Its event in the log: the number of it, or the id of a call. */
  readonly event?: string
}

/** A request that has no answer: under way, or broken off with its run. */
type Open = Pick<OpenRequest, "step" | "isUnderWay">

type TimedRun = Pick<Run, "createdAt" | "startedAt" | "completedAt" | "status" | "pauseReason" | "attempt">

/** The spans in the order in which they began; `nowMs` is the present. */
export const spansOf = (
  run: TimedRun,
  calls: ReadonlyArray<ModelCall>,
  tools: ReadonlyArray<ToolCallRecord>,
  nowMs: number,
  open: Open | null = null
): ReadonlyArray<Span> => {
  const bornMs = Date.parse(run.createdAt)
  const since = (instant: string): number => Date.parse(instant) - bornMs
  const present = run.completedAt === null ? Math.max(0, nowMs - bornMs) : since(run.completedAt)
  const spans = [
    {
      key: "queue",
      type: "wait" as const,
      label: "Waiting for a worker",
      startMs: 0,
      endMs: run.startedAt === null ? present : since(run.startedAt),
      isOpen: run.startedAt === null && run.completedAt === null,
      hasFailed: false,
      note: run.attempt > 1 ? `attempt ${run.attempt}: taken over by another worker` : ""
    },
    ...calls.map((call) => ({
      key: `model ${call.number}`,
      type: "model" as const,
      label: `${purposes[call.purpose]} ${call.step}`,
      flow: flowStepText(call.flowStep),
      startMs: since(call.startedAt),
      endMs: since(call.startedAt) + call.durationMs,
      isOpen: false,
      hasFailed: call.status === "failed",
      note: [call.try > 1 ? `try ${call.try}` : "", call.error ?? ""]
        .filter((part) => part !== "")
        .join(": "),
      event: String(call.answerEvent ?? call.afterEvent)
    })),
    ...tools.map((tool) => ({
      key: `tool ${tool.id}`,
      type: waitingTools.has(tool.tool) ? ("wait" as const) : ("tool" as const),
      label: tool.tool,
      startMs: since(tool.createdAt),
      endMs: tool.completedAt === null ? present : since(tool.completedAt),
      isOpen: tool.status === "started" && run.completedAt === null,
      hasFailed: tool.status === "failed" || tool.status === "refused",
      note: tool.decision === "suggest" ? "suggestion created" : tool.status === "refused" ? "refused" : "",
      event: tool.callId
    }))
  ].toSorted((one, other) => one.startMs - other.startMs)
  if (run.status === "paused") return [...spans, pauseOf(run, spans, present)]
  return open === null ? spans : [...spans, openSpanOf(open, spans, present)]
}

/** The tools that are over when a person has answered, or another run has ended. */
const waitingTools: ReadonlySet<string> = new Set(["ask_user", "spawn_agent"])

/** When it was sent is kept only with its answer; it began when all before it had ended. */
const openSpanOf = ({ step, isUnderWay }: Open, spans: ReadonlyArray<Span>, present: number): Span => ({
  key: "open",
  type: "model",
  label: `Step ${step}`,
  startMs: lastEnd(spans),
  endMs: present,
  isOpen: isUnderWay,
  hasFailed: !isUnderWay,
  note: isUnderWay ? "in progress" : "interrupted"
})

const lastEnd = (spans: ReadonlyArray<Span>): number => Math.max(0, ...spans.map(({ endMs }) => endMs))

/** The same with a span for each time of a second or more in which nothing was going on. */
export const withGaps = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  let from = spans[0]?.endMs ?? 0
  return spans.flatMap((span) => {
    const gap: Span = {
      key: `gap ${span.key}`,
      type: "wait",
      label: "Idle",
      startMs: from,
      endMs: span.startMs,
      isOpen: false,
      hasFailed: false,
      note: "no events recorded"
    }
    from = Math.max(from, span.endMs)
    return gap.endMs - gap.startMs >= limits.shownGapMs ? [gap, span] : [span]
  })
}

const purposes: Readonly<Record<ModelCall["purpose"], string>> = {
  step: "Step",
  guard: "Guardrail, step",
  summary: "Summary, step",
  notes: "Notes, step"
}

const waitLabels: Partial<Readonly<Record<PauseReason, string>>> = {
  question: "Waiting for a person",
  toolResult: "Waiting for a client"
}

const pauseOf = (run: TimedRun, spans: ReadonlyArray<Span>, present: number): Span => ({
  key: "pause",
  type: "wait",
  label: waitLabels[run.pauseReason ?? "stepLimit"] ?? "Paused",
  // The call that asks is open itself; the wait began when all else had ended.
  startMs: lastEnd(spans.filter(({ isOpen }) => !isOpen)),
  endMs: present,
  isOpen: true,
  hasFailed: false,
  note: ""
})

/** A span in words. */
export const spanText = ({ startMs, endMs, isOpen, note }: Span): string =>
  [
    `after ${durationText(startMs)}`,
    isOpen ? `for ${durationText(endMs - startMs)} so far` : `took ${durationText(endMs - startMs)}`,
    ...(note === "" ? [] : [note])
  ].join(", ")

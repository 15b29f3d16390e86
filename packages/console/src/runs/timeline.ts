/**
 * A run as spans of time: its wait for a worker, each request to a model with its tries, each tool call.
 *
 * Pure. Times are milliseconds since the run was made; what is still going on
 * ends at the present and says that it is open.
 */
import type { ToolCallRecord } from "@tropism/api/runs-api"
import type { ModelCall } from "@tropism/domain/model-call"
import type { Run } from "@tropism/domain/run"
import { durationText } from "../words/durations.ts"

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
}

type TimedRun = Pick<Run, "createdAt" | "startedAt" | "completedAt" | "status" | "pauseReason" | "attempt">

/** The spans in the order in which they began; `nowMs` is the present. */
export const spansOf = (
  run: TimedRun,
  calls: ReadonlyArray<ModelCall>,
  tools: ReadonlyArray<ToolCallRecord>,
  nowMs: number
): ReadonlyArray<Span> => {
  const bornMs = Date.parse(run.createdAt)
  const since = (instant: string): number => Date.parse(instant) - bornMs
  const present = run.completedAt === null ? Math.max(0, nowMs - bornMs) : since(run.completedAt)
  const spans = [
    {
      key: "queue",
      type: "wait" as const,
      label: "Waits for a worker",
      startMs: 0,
      endMs: run.startedAt === null ? present : since(run.startedAt),
      isOpen: run.startedAt === null && run.completedAt === null,
      hasFailed: false,
      note: run.attempt > 1 ? `attempt ${run.attempt}: another worker took it over` : ""
    },
    ...calls.map((call) => ({
      key: `model ${call.number}`,
      type: "model" as const,
      label: `${purposes[call.purpose]} ${call.step}`,
      startMs: since(call.startedAt),
      endMs: since(call.startedAt) + call.durationMs,
      isOpen: false,
      hasFailed: call.status === "failed",
      note: [call.try > 1 ? `try ${call.try}` : "", call.error ?? ""].filter((part) => part !== "").join(": ")
    })),
    ...tools.map((tool) => ({
      key: `tool ${tool.id}`,
      type: "tool" as const,
      label: tool.tool,
      startMs: since(tool.createdAt),
      endMs: tool.completedAt === null ? present : since(tool.completedAt),
      isOpen: tool.status === "started" && run.completedAt === null,
      hasFailed: tool.status === "failed" || tool.status === "refused",
      note: tool.decision === "suggest" ? "only suggested" : tool.status === "refused" ? "refused" : ""
    }))
  ].toSorted((one, other) => one.startMs - other.startMs)
  return run.status === "paused" ? [...spans, pauseOf(run, spans, present)] : spans
}

const purposes: Readonly<Record<ModelCall["purpose"], string>> = {
  step: "Step",
  guard: "Guard of step",
  summary: "Summary at step",
  notes: "Notes at step"
}

const pauseOf = (run: TimedRun, spans: ReadonlyArray<Span>, present: number): Span => ({
  key: "pause",
  type: "wait",
  label: run.pauseReason === "question" ? "Waits for a person" : "Is paused",
  startMs: Math.max(0, ...spans.map(({ endMs }) => endMs)),
  endMs: present,
  isOpen: true,
  hasFailed: false,
  note: ""
})

/** Where a span lies in the whole, from 0 to 1. */
export const placeIn = (
  { startMs, endMs }: Pick<Span, "startMs" | "endMs">,
  wholeMs: number
): { readonly start: number; readonly width: number } => {
  const whole = Math.max(1, wholeMs)
  const start = Math.min(1, Math.max(0, startMs / whole))
  return { start, width: Math.min(1 - start, Math.max(0, endMs - startMs) / whole) }
}

/** A span in words. */
export const spanText = ({ startMs, endMs, isOpen, note }: Span): string =>
  [
    `after ${durationText(startMs)}`,
    isOpen ? `for ${durationText(endMs - startMs)} so far` : `took ${durationText(endMs - startMs)}`,
    ...(note === "" ? [] : [note])
  ].join(", ")

/**
 * The state of a run as a sign, and as a badge with its word.
 */
import type { PauseReason, RunStatus, RunWait } from "@tropism/domain/run"
import type { ReactNode } from "react"
import { CautionIcon, CheckIcon, ClockIcon, CrossIcon, MinusIcon, PauseIcon } from "./icons.tsx"

interface Look {
  readonly icon: ReactNode
  readonly colour: string
  readonly word: string
}

const looks: Readonly<Record<RunStatus, Look>> = {
  queued: { icon: <ClockIcon size="tiny" />, colour: "bg-sunken text-ink-soft", word: "queued" },
  running: {
    icon: <span className="pulse-dot size-2 rounded-full bg-leaf" />,
    colour: "bg-leaf-soft text-leaf",
    word: "running"
  },
  completed: { icon: <CheckIcon size="tiny" />, colour: "bg-leaf-soft text-leaf", word: "completed" },
  failed: { icon: <CrossIcon size="tiny" />, colour: "bg-removed text-removed-ink", word: "failed" },
  cancelled: { icon: <MinusIcon size="tiny" />, colour: "bg-sunken text-ink-soft", word: "cancelled" },
  paused: { icon: <PauseIcon size="tiny" />, colour: "bg-caution text-caution-ink", word: "paused" },
  skipped: { icon: <CautionIcon size="tiny" />, colour: "bg-sunken text-ink-soft", word: "skipped" }
}

const pauseWords: Readonly<Record<PauseReason, string>> = {
  stepLimit: "paused: step limit reached",
  timeout: "paused: timed out",
  budget: "paused: budget used up",
  question: "paused: waiting for an answer",
  subAgents: "paused: waiting for sub-agents",
  killSwitch: "paused: kill switch",
  toolResult: "paused: waiting for a tool result"
}

/** A round sign; the word stands beside it or is read out. */
export const RunSign = ({ status }: { readonly status: RunStatus }): ReactNode => (
  <span
    aria-hidden="true"
    className={`grid size-5 shrink-0 place-items-center rounded-full ${looks[status].colour}`}
  >
    {looks[status].icon}
  </span>
)

/** The word, or why a run rests. */
export const runStatusWord = (
  status: RunStatus,
  pauseReason: PauseReason | null = null,
  waitingFor: RunWait | null = null
): string => {
  if (waitingFor !== null) return "queued: provider unavailable"
  return pauseReason === null ? looks[status].word : pauseWords[pauseReason]
}

interface RunStatusBadgeProps {
  readonly status: RunStatus
  readonly pauseReason?: PauseReason | null
  readonly waitingFor?: RunWait | null
}

export const RunStatusBadge = ({
  status,
  pauseReason = null,
  waitingFor = null
}: RunStatusBadgeProps): ReactNode => (
  <span
    data-status={status}
    data-pause-reason={pauseReason}
    className={`inline-flex items-center gap-1.5 rounded-full px-2 text-2xs leading-5 font-medium ${looks[status].colour}`}
  >
    <span aria-hidden="true" className="grid size-3 place-items-center">
      {looks[status].icon}
    </span>
    {runStatusWord(status, pauseReason, waitingFor)}
  </span>
)

/**
 * What holds an agent back: steps, time, tokens and money, runs that wait, and failures.
 */
import type { ReactNode } from "react"
import { TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const LimitFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <div className="grid gap-4 sm:grid-cols-2">
    {limitWords.map(({ field, label, hint, pointer }) => (
      <TextField
        key={field}
        label={label}
        hint={hint}
        {...at(pointer)}
        value={draft[field]}
        onChange={(value) => change({ [field]: value })}
      />
    ))}
  </div>
)

const limitWords = [
  {
    field: "maxSteps",
    label: "Max steps per run",
    hint: "Leave empty for no limit",
    pointer: "/maxSteps"
  },
  {
    field: "defaultTimeoutMs",
    label: "Run timeout (ms)",
    hint: "The run is then paused. Leave empty for no limit; 15 minutes for triggered runs.",
    pointer: "/defaultTimeoutMs"
  },
  {
    field: "runTokens",
    label: "Max tokens per run",
    hint: "Including sub-agent runs",
    pointer: "/budget/perRun/maxTokens"
  },
  {
    field: "runDollars",
    label: "Max cost per run ($)",
    hint: "Only where the model's price is known",
    pointer: "/budget/perRun/maxCostUsd"
  },
  {
    field: "dayTokens",
    label: "Max tokens per day",
    hint: "This agent's own requests, UTC",
    pointer: "/budget/perDay/maxTokens"
  },
  {
    field: "dayDollars",
    label: "Max cost per day ($)",
    hint: "This agent's own requests, UTC",
    pointer: "/budget/perDay/maxCostUsd"
  },
  {
    field: "maxPendingRuns",
    label: "Max open runs",
    hint: "Queued, running and paused. Default: 1000; further runs are refused.",
    pointer: "/maxPendingRuns"
  },
  {
    field: "disableAfterFailures",
    label: "Disable after N consecutive failures",
    hint: "Default: 10",
    pointer: "/disableAfterFailures"
  }
] as const

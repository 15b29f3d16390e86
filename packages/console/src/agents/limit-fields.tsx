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
    label: "Steps of one run at most",
    hint: "Empty is unbounded",
    pointer: "/maxSteps"
  },
  {
    field: "defaultTimeoutMs",
    label: "Time of one run, in ms",
    hint: "Then it is asked to stop; empty is unbounded, and 15 minutes for one that reacts",
    pointer: "/defaultTimeoutMs"
  },
  {
    field: "runTokens",
    label: "Tokens of one run, at most",
    hint: "With all the runs that it spawns",
    pointer: "/budget/perRun/maxTokens"
  },
  {
    field: "runDollars",
    label: "Dollars of one run, at most",
    hint: "Where the model's price is known",
    pointer: "/budget/perRun/maxCostUsd"
  },
  {
    field: "dayTokens",
    label: "Tokens of one day, at most",
    hint: "Of its own requests, in UTC",
    pointer: "/budget/perDay/maxTokens"
  },
  {
    field: "dayDollars",
    label: "Dollars of one day, at most",
    hint: "Of its own requests, in UTC",
    pointer: "/budget/perDay/maxCostUsd"
  },
  {
    field: "maxPendingRuns",
    label: "Runs that wait or work, at most",
    hint: "1000 by itself; one more that is asked for is refused",
    pointer: "/maxPendingRuns"
  },
  {
    field: "disableAfterFailures",
    label: "Failures in a row that disable it",
    hint: "10 by itself",
    pointer: "/disableAfterFailures"
  }
] as const

/**
 * How the runs of a reaction wait for quiet, for company and for one another, and whether a failed one is tried again.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const WaitFields = (fields: DraftFields): ReactNode => {
  const { draft, change, at } = fields
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <ChoiceField
        label="Concurrency (same object)"
        hint="What to do with a new event while a run is in progress"
        {...at("/reactionConfig/concurrencyStrategy")}
        value={draft.concurrencyStrategy}
        choices={[
          { value: "", label: "The server's default" },
          { value: "skip", label: "Skip the event" },
          { value: "latest", label: "Run again with the latest state" },
          { value: "queue", label: "Queue" },
          { value: "parallel", label: "Run in parallel" }
        ]}
        onChange={(concurrencyStrategy) => change({ concurrencyStrategy })}
      />
      {numbers.map(({ field, label, hint, pointer }) => (
        <TextField
          key={field}
          label={label}
          hint={hint}
          {...at(`/reactionConfig/${pointer ?? field}`)}
          value={draft[field]}
          onChange={(value) => change({ [field]: value })}
        />
      ))}
      <RetryFields {...fields} />
    </div>
  )
}

interface NumberWords {
  readonly field: "debounceMs" | "maxWaitMs" | "batchSize" | "maxConcurrency" | "maxRuns" | "perSeconds"
  readonly label: string
  readonly hint?: string
  /** Where it is not the field's own name. */
  readonly pointer?: string
}

const numbers: ReadonlyArray<NumberWords> = [
  { field: "debounceMs", label: "Debounce (ms)", hint: "0 runs immediately" },
  {
    field: "maxWaitMs",
    label: "Max wait (ms)",
    hint: "For debounced and batched events"
  },
  { field: "batchSize", label: "Batch size", hint: "Default: 1" },
  { field: "maxConcurrency", label: "Max concurrent runs", hint: "Leave empty for no limit" },
  {
    field: "maxRuns",
    label: "Rate limit: max runs",
    hint: "Further events wait. Leave empty for no limit.",
    pointer: "rateLimit/maxRuns"
  },
  {
    field: "perSeconds",
    label: "Per (seconds)",
    hint: "Rate limit window",
    pointer: "rateLimit/perSeconds"
  }
]

const RetryFields = ({ draft: { retry }, change, at }: DraftFields): ReactNode => (
  <>
    <ChoiceField
      label="On failure"
      hint="Triggered runs only. Anyone can retry manually."
      name="retries"
      value={retry === null ? "" : "again"}
      choices={[
        { value: "", label: "Move to dead letters" },
        { value: "again", label: "Retry" }
      ]}
      onChange={(said) => change({ retry: said === "" ? null : { maxAttempts: "2", backoffMs: "60000" } })}
    />
    {retry !== null && (
      <>
        <TextField
          label="Max attempts"
          hint="2 to 5, including the first"
          {...at("/retryPolicy/maxAttempts")}
          value={retry.maxAttempts}
          onChange={(maxAttempts) => change({ retry: { ...retry, maxAttempts } })}
        />
        <TextField
          label="Retry delay (ms)"
          hint="Doubles with each attempt"
          {...at("/retryPolicy/backoffMs")}
          value={retry.backoffMs}
          onChange={(backoffMs) => change({ retry: { ...retry, backoffMs } })}
        />
      </>
    )}
  </>
)

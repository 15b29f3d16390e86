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
        label="While it is at work on the object"
        hint="What becomes of another event of it"
        {...at("/reactionConfig/concurrencyStrategy")}
        value={draft.concurrencyStrategy}
        choices={[
          { value: "", label: "The server's default" },
          { value: "skip", label: "Skip the event" },
          { value: "latest", label: "Run once more at its end" },
          { value: "queue", label: "Queue it" },
          { value: "parallel", label: "Run beside it" }
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
  { field: "debounceMs", label: "Wait until quiet, in ms", hint: "0 is at once" },
  {
    field: "maxWaitMs",
    label: "Wait at most, in ms",
    hint: "Of what waits until it is quiet, or for a batch"
  },
  { field: "batchSize", label: "Events for one run, at most", hint: "1 by itself" },
  { field: "maxConcurrency", label: "Runs at once, at most", hint: "Empty is unbounded" },
  {
    field: "maxRuns",
    label: "Runs begun, at most",
    hint: "What is beyond waits; empty is unbounded",
    pointer: "rateLimit/maxRuns"
  },
  {
    field: "perSeconds",
    label: "Within so many seconds",
    hint: "Of the runs begun",
    pointer: "rateLimit/perSeconds"
  }
]

const RetryFields = ({ draft: { retry }, change, at }: DraftFields): ReactNode => (
  <>
    <ChoiceField
      label="When a run fails"
      hint="Of its reaction; a person may always try it again"
      name="retries"
      value={retry === null ? "" : "again"}
      choices={[
        { value: "", label: "A person looks at it" },
        { value: "again", label: "Try it again" }
      ]}
      onChange={(said) => change({ retry: said === "" ? null : { maxAttempts: "2", backoffMs: "60000" } })}
    />
    {retry !== null && (
      <>
        <TextField
          label="Tries in all"
          hint="From 2 to 5, the first included"
          {...at("/retryPolicy/maxAttempts")}
          value={retry.maxAttempts}
          onChange={(maxAttempts) => change({ retry: { ...retry, maxAttempts } })}
        />
        <TextField
          label="Pause before the second, in ms"
          hint="It doubles with each"
          {...at("/retryPolicy/backoffMs")}
          value={retry.backoffMs}
          onChange={(backoffMs) => change({ retry: { ...retry, backoffMs } })}
        />
      </>
    )}
  </>
)

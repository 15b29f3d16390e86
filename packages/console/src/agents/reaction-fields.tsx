/**
 * Which changes of the graph wake an agent, and how its runs wait for one another.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { ConditionFields } from "./condition-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const ReactionFields = (fields: DraftFields): ReactNode => {
  const { draft, change, error } = fields
  return (
    <>
      <TextField
        label="Types of objects"
        hint="Parted by commas; empty is all"
        pointer="/reactionConfig/objectTypes"
        error={error}
        value={draft.objectTypes}
        onChange={(objectTypes) => change({ objectTypes })}
      />
      <div role="group" aria-label="Changes" className="flex flex-wrap gap-4 text-sm">
        {changeTypes.map((type) => (
          <label key={type} className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={draft.events.includes(type)}
              onChange={({ target }) =>
                change({
                  events: changeTypes.filter((each) =>
                    each === type ? target.checked : draft.events.includes(each)
                  )
                })
              }
              className="size-4 accent-leaf"
            />
            {type}
          </label>
        ))}
      </div>
      <ConditionFields draft={draft} change={change} error={error} />
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="While it is at work on the object"
          pointer="/reactionConfig/concurrencyStrategy"
          error={error}
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
        <WaitFields {...fields} />
      </div>
      <TextField
        label="More of the reaction"
        hint="A JSON object: relationshipTypes, mcpEvents, ignoreSelfTriggered, ignoreAgentTriggered"
        value={draft.reactionRest}
        onChange={(reactionRest) => change({ reactionRest })}
        lines={3}
        isMono
      />
    </>
  )
}

/** How its runs wait for quiet, for company, and for one another. */
const WaitFields = (fields: DraftFields): ReactNode => {
  const { draft, change, error } = fields
  return (
    <>
      <NumberOf field="debounceMs" label="Wait until quiet, in ms" hint="0 is at once" fields={fields} />
      <NumberOf
        field="maxWaitMs"
        label="Wait at most, in ms"
        hint="Of what waits until it is quiet, or for a batch"
        fields={fields}
      />
      <NumberOf field="batchSize" label="Events for one run, at most" hint="1 by itself" fields={fields} />
      <NumberOf
        field="maxConcurrency"
        label="Runs at once, at most"
        hint="Empty is unbounded"
        fields={fields}
      />
      <TextField
        label="Runs begun, at most"
        hint="What is beyond waits; empty is unbounded"
        pointer="/reactionConfig/rateLimit/maxRuns"
        error={error}
        value={draft.maxRuns}
        onChange={(maxRuns) => change({ maxRuns })}
      />
      <TextField
        label="Within so many seconds"
        pointer="/reactionConfig/rateLimit/perSeconds"
        error={error}
        value={draft.perSeconds}
        onChange={(perSeconds) => change({ perSeconds })}
      />
    </>
  )
}

interface NumberOfProps {
  readonly field: "debounceMs" | "maxWaitMs" | "batchSize" | "maxConcurrency"
  readonly label: string
  readonly hint: string
  readonly fields: DraftFields
}

const NumberOf = ({ field, label, hint, fields: { draft, change, error } }: NumberOfProps): ReactNode => (
  <TextField
    label={label}
    hint={hint}
    pointer={`/reactionConfig/${field}`}
    error={error}
    value={draft[field]}
    onChange={(value) => change({ [field]: value })}
  />
)

const changeTypes = ["created", "updated", "deleted"]

/**
 * What wakes an agent: changes of the graph, a schedule with its next fires, a webhook, or people.
 */
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useLater } from "../parts/use-later.ts"
import type { DraftFields } from "./draft-fields.ts"
import { triggerTypes } from "./agent-words.ts"
import { NextFires } from "./next-fires.tsx"

export const TriggerFields = (fields: DraftFields): ReactNode => {
  const { draft, change, error } = fields
  return (
    <>
      <ChoiceField
        label="Woken by"
        pointer="/triggerType"
        error={error}
        value={draft.triggerType}
        choices={triggerTypes}
        onChange={(triggerType) => change({ triggerType })}
      />
      {draft.triggerType === "reaction" && <ReactionFields {...fields} />}
      {draft.triggerType === "schedule" && <ScheduleFields {...fields} />}
      {draft.triggerType === "webhook" && (
        <p className="text-sm text-ink-soft">
          Once it is saved, its webhooks are made with their secrets by{" "}
          <code>npx tropism webhooks create</code>.
        </p>
      )}
    </>
  )
}

const changeTypes = ["created", "updated", "deleted"]

const ReactionFields = ({ draft, change, error }: DraftFields): ReactNode => (
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
    <TextField
      label="Only where"
      hint='Conditions as JSON: {"changedProperties": ["license"]}'
      pointer="/reactionConfig/where"
      error={error}
      value={draft.where}
      onChange={(where) => change({ where })}
      lines={3}
      isMono
    />
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
      <TextField
        label="Wait until quiet, in ms"
        pointer="/reactionConfig/debounceMs"
        error={error}
        value={draft.debounceMs}
        onChange={(debounceMs) => change({ debounceMs })}
      />
    </div>
    <TextField
      label="More of the reaction"
      hint="A JSON object: batchSize, maxConcurrency, rateLimit, relationshipTypes, ignoreAgentTriggered, …"
      value={draft.reactionRest}
      onChange={(reactionRest) => change({ reactionRest })}
      lines={3}
      isMono
    />
  </>
)

const ScheduleFields = ({ draft, change, error }: DraftFields): ReactNode => {
  const [asked, setAsked] = useState({ cron: draft.cronSchedule, zone: draft.timezone })
  const later = useLater(limits.searchPauseMs)
  const ask = (changes: Partial<Pick<typeof draft, "cronSchedule" | "timezone">>) => {
    change(changes)
    const { cronSchedule, timezone } = { ...draft, ...changes }
    later(() => setAsked({ cron: cronSchedule, zone: timezone }))
  }
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Schedule"
          hint="Minute, hour, day, month, weekday"
          pointer="/cronSchedule"
          error={error}
          value={draft.cronSchedule}
          onChange={(cronSchedule) => ask({ cronSchedule })}
          isMono
        />
        <TextField
          label="Time zone"
          hint="An IANA name, e.g. Europe/Berlin"
          pointer="/timezone"
          error={error}
          value={draft.timezone}
          onChange={(timezone) => ask({ timezone })}
        />
      </div>
      <NextFires cron={asked.cron} zone={asked.zone} />
    </>
  )
}

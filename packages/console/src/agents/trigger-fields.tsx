/**
 * What wakes an agent: changes of the graph or foreign events, a schedule with its next fires, a webhook, or people.
 */
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { InlineCommand } from "../parts/command.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useLater } from "../parts/use-later.ts"
import type { DraftFields } from "./draft-fields.ts"
import { triggerTypes } from "./agent-words.ts"
import { NextFires } from "./next-fires.tsx"
import { ReactionFields } from "./reaction-fields.tsx"

export const TriggerFields = (fields: DraftFields): ReactNode => {
  const { draft, change, at } = fields
  return (
    <>
      <ChoiceField
        label="Trigger type"
        {...at("/triggerType")}
        value={draft.triggerType}
        choices={triggerTypes}
        onChange={(triggerType) => change({ triggerType })}
      />
      {draft.triggerType === "reaction" && <ReactionFields {...fields} />}
      {draft.triggerType === "schedule" && <ScheduleFields {...fields} />}
      {draft.triggerType === "webhook" && (
        <p className="text-sm text-ink-soft">
          After saving, create webhooks on the “Webhooks” tab or with{" "}
          <InlineCommand text={`npx tropism webhooks create ${draft.name === "" ? "AGENT" : draft.name}`} />.
        </p>
      )}
    </>
  )
}

const ScheduleFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const [asked, setAsked] = useState({ cron: draft.cronSchedule, zone: draft.timezone })
  const later = useLater(limits.searchPauseMs)
  const ask = (changes: Partial<Pick<typeof draft, "cronSchedule" | "timezone">>) => {
    change(changes)
    const { cronSchedule, timezone } = { ...draft, ...changes }
    later(() => setAsked({ cron: cronSchedule, zone: timezone.trim() }))
  }
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Schedule"
          hint="Minute, hour, day, month, weekday"
          {...at("/cronSchedule")}
          value={draft.cronSchedule}
          onChange={(cronSchedule) => ask({ cronSchedule })}
          isMono
        />
        <TextField
          label="Time zone"
          hint="An IANA name, e.g. Europe/Berlin"
          {...at("/timezone")}
          value={draft.timezone}
          onChange={(timezone) => ask({ timezone })}
        />
      </div>
      <NextFires cron={asked.cron} zone={asked.zone} />
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="Missed schedules"
          hint="While the server was offline"
          {...at("/catchUp")}
          value={draft.catchUp}
          choices={[
            { value: "", label: "The server's default" },
            { value: "one", label: "One run for all" },
            { value: "all", label: "One run each" },
            { value: "none", label: "Skip" }
          ]}
          onChange={(catchUp) => change({ catchUp })}
        />
        <ChoiceField
          label="Overlapping runs"
          hint="When the previous run is still open"
          {...at("/overlapPolicy")}
          value={draft.overlapPolicy}
          choices={[
            { value: "", label: "The server's default" },
            { value: "skip", label: "Skip" },
            { value: "allow", label: "Run in parallel" }
          ]}
          onChange={(overlapPolicy) => change({ overlapPolicy })}
        />
      </div>
    </>
  )
}

/**
 * Which changes of the graph, and what else, wake an agent.
 */
import type { ReactNode } from "react"
import { CheckField, ChoiceField } from "../parts/form-fields.tsx"
import { ConditionFields } from "./condition-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"
import { GroupFault } from "./group-fault.tsx"
import { ListenerFields } from "./listener-fields.tsx"
import { TypesField } from "./types-field.tsx"
import { WaitFields } from "./wait-fields.tsx"

export const ReactionFields = (fields: DraftFields): ReactNode => {
  const { draft, change, at } = fields
  return (
    <>
      <TypesField
        of="objects"
        label="Object types"
        hint="Comma-separated. Leave empty for all types."
        place={at("/reactionConfig/objectTypes")}
        value={draft.objectTypes}
        onChange={(objectTypes) => change({ objectTypes })}
      />
      <RelationshipFields {...fields} />
      <ChangeFields {...fields} />
      <ConditionFields {...fields} />
      <ListenerFields {...fields} />
      <div role="group" aria-label="Changes by" className="grid gap-2">
        <CheckField
          label="Ignore its own changes"
          hint="Includes undos"
          pointer="/reactionConfig/ignoreSelfTriggered"
          isChecked={draft.ignoresItself}
          onChange={(ignoresItself) => change({ ignoresItself })}
        />
        <CheckField
          label="Ignore changes by all agents"
          hint="Only people, imports and programs trigger it"
          pointer="/reactionConfig/ignoreAgentTriggered"
          isChecked={draft.ignoresAgents}
          onChange={(ignoresAgents) => change({ ignoresAgents })}
        />
      </div>
      <WaitFields {...fields} />
    </>
  )
}

const RelationshipFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <>
    <div className="grid gap-4 sm:grid-cols-2">
      <ChoiceField
        label="Relationships"
        hint="Relationship changes that trigger it"
        name="relationships"
        value={draft.relationships}
        choices={[
          { value: "none", label: "None (objects only)" },
          { value: "these", label: "Selected types" },
          { value: "all", label: "All types" }
        ]}
        onChange={(relationships) => change({ relationships })}
      />
    </div>
    {draft.relationships === "these" && (
      <TypesField
        of="relationships"
        label="Relationship types"
        hint="Comma-separated"
        place={at("/reactionConfig/relationshipTypes")}
        value={draft.relationshipTypes}
        onChange={(relationshipTypes) => change({ relationshipTypes })}
      />
    )}
  </>
)

const changeTypes = ["created", "updated", "deleted"]

const ChangeFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <div role="group" aria-label="Changes">
    <p className="text-sm font-medium">Changes</p>
    <p className="text-xs text-ink-faint">None (external events only)</p>
    <div className="mt-1.5 flex flex-wrap gap-4 text-sm">
      {changeTypes.map((type) => (
        <label key={type} className="flex min-h-6 items-center gap-2">
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
    <GroupFault label="Changes" place={at("/reactionConfig/events")} />
  </div>
)

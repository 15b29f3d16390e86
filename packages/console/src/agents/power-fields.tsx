/**
 * What an agent may do: its tools, and for each kind of change whether it is done, suggested or refused.
 */
import type { ChangeKind } from "@tropism/domain/capability"
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { TableHead } from "../parts/table-head.tsx"
import { capabilityFlags, type CapabilityFlag, isPermitted, permitting } from "./agent-draft.ts"
import type { DraftFields } from "./draft-fields.ts"
import { outcomeOf, outcomeWord } from "./agent-words.ts"
import { HybridFields } from "./hybrid-fields.tsx"
import { toggled } from "./policy-draft.ts"
import { SubAgentFields } from "./sub-agent-fields.tsx"

/** What a capability is about, and the change that it is the capability for. */
const kinds: Readonly<Record<CapabilityFlag, { readonly title: string; readonly kind: ChangeKind }>> = {
  canCreateObjects: { title: "Create object", kind: "create" },
  canUpdateObjects: { title: "Update object", kind: "update" },
  canDeleteObjects: { title: "Delete object", kind: "delete" },
  canCreateRelationships: { title: "Create relationship", kind: "createRelationship" },
  canUpdateRelationships: { title: "Update relationship", kind: "updateRelationship" },
  canDeleteRelationships: { title: "Delete relationship", kind: "deleteRelationship" }
}

export const PowerFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <>
    <ChoiceField
      label="Mode"
      {...at("/executionMode")}
      value={draft.executionMode}
      choices={[
        { value: "suggest", label: "Suggest: a person reviews each change" },
        { value: "hybrid", label: "Hybrid: apply high-confidence changes, ask for the rest" },
        { value: "execute", label: "Execute: apply all permitted changes" }
      ]}
      onChange={(executionMode) => change({ executionMode })}
    />
    {draft.executionMode === "hybrid" && <HybridFields draft={draft} change={change} at={at} />}
    <ChangeTable draft={draft} change={change} />
    <div className="grid gap-4 sm:grid-cols-2">
      <ChoiceField
        label="Writable object types"
        name="touches"
        value={draft.touches}
        choices={[
          { value: "all", label: "All types" },
          { value: "these", label: "Selected types" }
        ]}
        onChange={(touches) => change({ touches })}
      />
      {draft.touches === "these" && (
        <TextField
          label="Writable types"
          hint="Comma-separated. Leave empty for none."
          {...at("/capabilities/allowedObjectTypes")}
          value={draft.allowedObjectTypes}
          onChange={(allowedObjectTypes) => change({ allowedObjectTypes })}
        />
      )}
    </div>
    <TextField
      label="Tools"
      hint="One per line; * is a wildcard: graph.*, tasks.add_task, github.search_*"
      {...at("/tools")}
      value={draft.tools}
      onChange={(tools) => change({ tools })}
      lines={3}
      isMono
    />
    <SubAgentFields draft={draft} change={change} at={at} />
    <TextField
      label="Tools exempt from loop detection"
      hint="May be called repeatedly with the same arguments, e.g. to poll. One per line; * is a wildcard."
      {...at("/repeatableTools")}
      value={draft.repeatableTools}
      onChange={(repeatableTools) => change({ repeatableTools })}
      lines={2}
      isMono
    />
  </>
)

/** What becomes of each kind of change. */
const ChangeTable = ({ draft, change }: Pick<DraftFields, "draft" | "change">): ReactNode => {
  const isHybrid = draft.executionMode === "hybrid"
  const titles = ["Change", "Allowed", ...(isHybrid ? ["Always asks"] : []), "Outcome"]
  return (
    <table className="w-full text-left text-sm">
      <caption className="sr-only">Outcome by operation</caption>
      <TableHead titles={titles} />
      <tbody>
        {capabilityFlags.map((flag) => {
          const { title, kind } = kinds[flag]
          const isAllowed = isPermitted(draft, kind)
          const alwaysAsks = draft.alwaysSuggest.includes(kind)
          const outcome = outcomeOf(isAllowed, draft.executionMode, alwaysAsks)
          return (
            <tr key={flag} data-change={kind} className="border-b border-line">
              <th scope="row" className="py-1.5 pr-3 font-normal">
                {title}
              </th>
              <td data-field={`/capabilities/${flag}`} className="py-1.5 pr-3">
                <TableCheck
                  label={`${title}: allowed`}
                  isChecked={isAllowed}
                  onChange={(isChecked) => change(permitting(draft, flag, kind, isChecked))}
                />
              </td>
              {isHybrid && (
                <td data-field={`/hybridPolicy/alwaysSuggest/${kind}`} className="py-1.5 pr-3">
                  <TableCheck
                    label={`${title}: always asks`}
                    isChecked={alwaysAsks}
                    onChange={(isChecked) =>
                      change({ alwaysSuggest: toggled(draft.alwaysSuggest, kind, isChecked) })
                    }
                  />
                </td>
              )}
              <td
                data-outcome={outcome}
                className={`py-1.5 ${isAllowed ? "text-ink-soft" : "text-caution-ink"}`}
              >
                {outcomeWord(outcome, draft.threshold)}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

interface TableCheckProps {
  readonly label: string
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
}

const TableCheck = ({ label, isChecked, onChange }: TableCheckProps): ReactNode => (
  <input
    type="checkbox"
    aria-label={label}
    checked={isChecked}
    onChange={({ target }) => onChange(target.checked)}
    className="size-4 align-middle accent-leaf"
  />
)

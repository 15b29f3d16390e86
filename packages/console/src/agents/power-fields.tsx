/**
 * What an agent may do: its tools, and for each kind of change whether it is done, suggested or refused.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { capabilityFlags, type CapabilityFlag } from "./agent-draft.ts"
import type { DraftFields } from "./draft-fields.ts"
import { outcomeWord } from "./agent-words.ts"
import { SubAgentFields } from "./sub-agent-fields.tsx"

const kinds: Readonly<Record<CapabilityFlag, string>> = {
  canCreateObjects: "Creates an object",
  canUpdateObjects: "Updates an object",
  canDeleteObjects: "Deletes an object",
  canCreateRelationships: "Creates a relationship",
  canUpdateRelationships: "Updates a relationship",
  canDeleteRelationships: "Deletes a relationship"
}

export const PowerFields = ({ draft, change, error }: DraftFields): ReactNode => (
  <>
    <ChoiceField
      label="Mode"
      pointer="/executionMode"
      error={error}
      value={draft.executionMode}
      choices={[
        { value: "suggest", label: "Suggest: a person decides each change" },
        { value: "hybrid", label: "Hybrid: it acts where it is sure, and asks where not" },
        { value: "execute", label: "Execute: it acts by itself" }
      ]}
      onChange={(executionMode) => change({ executionMode })}
    />
    {draft.executionMode === "hybrid" && (
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Sure from"
          hint="From 0 to 1; 0.8 by itself. Deleting is always suggested, unless you say otherwise"
          pointer="/hybridPolicy/confidenceThreshold"
          error={error}
          value={draft.threshold}
          onChange={(threshold) => change({ threshold })}
        />
        <TextField
          label="More of when it asks"
          hint='A JSON object: {"alwaysSuggest": ["delete"], "promotion": {…}}'
          value={draft.hybridRest}
          onChange={(hybridRest) => change({ hybridRest })}
          lines={2}
          isMono
        />
      </div>
    )}
    <table className="w-full text-left text-sm">
      <caption className="sr-only">What becomes of each kind of change</caption>
      <thead className="text-2xs text-ink-faint">
        <tr className="border-b border-line">
          <th scope="col" className="py-1.5 font-normal">
            Change
          </th>
          <th scope="col" className="py-1.5 font-normal">
            Allowed
          </th>
          <th scope="col" className="py-1.5 font-normal">
            What becomes of it
          </th>
        </tr>
      </thead>
      <tbody>
        {capabilityFlags.map((flag) => {
          const isAllowed = !draft.denied.includes(flag)
          return (
            <tr key={flag} className="border-b border-line">
              <th scope="row" className="py-1.5 font-normal">
                {kinds[flag]}
              </th>
              <td className="py-1.5">
                <input
                  type="checkbox"
                  aria-label={`${kinds[flag]}: allowed`}
                  checked={isAllowed}
                  onChange={({ target }) =>
                    change({
                      denied: capabilityFlags.filter((each) =>
                        each === flag ? !target.checked : draft.denied.includes(each)
                      )
                    })
                  }
                  className="size-4 accent-leaf"
                />
              </td>
              <td className={`py-1.5 ${isAllowed ? "text-ink-soft" : "text-caution-ink"}`}>
                {outcomeWord(isAllowed, draft.executionMode, draft.threshold)}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
    <div className="grid gap-4 sm:grid-cols-2">
      <ChoiceField
        label="Types that it may touch"
        value={draft.touches}
        choices={[
          { value: "all", label: "All types" },
          { value: "these", label: "Only those named" }
        ]}
        onChange={(touches) => change({ touches })}
      />
      {draft.touches === "these" && (
        <TextField
          label="Only these types of objects"
          hint="Parted by commas; empty is none"
          pointer="/capabilities/allowedObjectTypes"
          error={error}
          value={draft.allowedObjectTypes}
          onChange={(allowedObjectTypes) => change({ allowedObjectTypes })}
        />
      )}
    </div>
    <TextField
      label="Tools"
      hint="One a line, with * as a wildcard: graph.*, tasks.add_task, github.search_*"
      pointer="/tools"
      error={error}
      value={draft.tools}
      onChange={(tools) => change({ tools })}
      lines={3}
      isMono
    />
    <SubAgentFields draft={draft} change={change} error={error} />
    <TextField
      label="Steps of one run at most"
      hint="Empty is unbounded"
      pointer="/maxSteps"
      error={error}
      value={draft.maxSteps}
      onChange={(maxSteps) => change({ maxSteps })}
    />
    <div className="grid gap-4 sm:grid-cols-2">
      {spendingFields.map(({ field, label, hint, pointer }) => (
        <TextField
          key={field}
          label={label}
          hint={hint}
          pointer={pointer}
          error={error}
          value={draft[field]}
          onChange={(value) => change({ [field]: value })}
        />
      ))}
    </div>
  </>
)

/** What it may spend on models; empty is unbounded. */
const spendingFields = [
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
  }
] as const

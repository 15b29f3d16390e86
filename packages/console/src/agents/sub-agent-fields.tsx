/**
 * Which agents an agent may spawn: names, of which the project's are offered.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { agentNamesQuery } from "../server/agent-queries.ts"
import type { DraftFields } from "./draft-fields.ts"
import { partsOf } from "./draft-texts.ts"

export const SubAgentFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const { project } = useConsole()
  const { data: names } = useQuery(agentNamesQuery(project.id))
  const named = partsOf(draft.subAgents)
  const offered = [...(names?.values() ?? [])].filter((name) => name !== draft.name && !named.includes(name))
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Sub-agents"
        hint="One per line; * is a wildcard: researcher, research-*. Leave empty for none."
        {...at("/subAgents")}
        value={draft.subAgents}
        onChange={(subAgents) => change({ subAgents })}
        lines={3}
        isMono
      />
      <ChoiceField
        label="Add an agent"
        hint="In this project"
        name="addSubAgent"
        value=""
        choices={[
          { value: "", label: "Select …" },
          ...offered.toSorted().map((name) => ({ value: name, label: name }))
        ]}
        onChange={(name) => change({ subAgents: [...named, name].filter((each) => each !== "").join("\n") })}
      />
    </div>
  )
}

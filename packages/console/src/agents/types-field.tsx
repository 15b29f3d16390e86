/**
 * Types of objects or relationships by their names, of which the graph's and those of other agents are offered.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { agentsQuery } from "../server/agent-queries.ts"
import { typesInUseQuery } from "../server/type-queries.ts"
import type { At } from "./draft-fields.ts"
import { partsOf } from "./draft-texts.ts"

interface TypesFieldProps {
  readonly of: "objects" | "relationships"
  readonly label: string
  readonly hint: string
  readonly place: ReturnType<At>
  readonly value: string
  readonly onChange: (value: string) => void
}

export const TypesField = ({ of, label, hint, place, value, onChange }: TypesFieldProps): ReactNode => {
  const { project } = useConsole()
  const { data: inUse = [] } = useQuery(typesInUseQuery(project.id, of))
  const { data: agents } = useQuery(agentsQuery(project.id))
  const named = partsOf(value)
  const heard = (agents?.items ?? []).flatMap(
    ({ reactionConfig }) => reactionConfig?.[of === "objects" ? "objectTypes" : "relationshipTypes"] ?? []
  )
  const offered = [...new Set([...inUse, ...heard])].filter((type) => !named.includes(type)).toSorted()
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField label={label} hint={hint} {...place} value={value} onChange={onChange} />
      <ChoiceField
        label={of === "objects" ? "Add object type" : "Add relationship type"}
        hint="In this project"
        name={of === "objects" ? "addObjectType" : "addRelationshipType"}
        value=""
        choices={[
          { value: "", label: offered.length === 0 ? "No other types" : "Select …" },
          ...offered.map((type) => ({ value: type, label: type }))
        ]}
        onChange={(type) => onChange([...named, type].filter((each) => each !== "").join(", "))}
      />
    </div>
  )
}

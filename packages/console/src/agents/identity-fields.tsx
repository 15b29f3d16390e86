/**
 * Who an agent is: its name, its role and its prompts.
 */
import type { ReactNode } from "react"
import { TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const IdentityFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <>
    <TextField
      label="Name"
      hint="Letters, digits, dots, dashes and underscores"
      {...at("/name")}
      value={draft.name}
      onChange={(name) => change({ name })}
      isRequired
    />
    <TextField label="Role" {...at("/role")} value={draft.role} onChange={(role) => change({ role })} />
    <TextField
      label="Prompt"
      hint="Liquid template with event, object, input, agent and project, e.g. Greet {{ object.key }}."
      {...at("/prompt")}
      value={draft.prompt}
      onChange={(prompt) => change({ prompt })}
      lines={6}
      isMono
      isRequired
    />
    <TextField
      label="System prompt"
      {...at("/systemPrompt")}
      value={draft.systemPrompt}
      onChange={(systemPrompt) => change({ systemPrompt })}
      lines={3}
      isMono
    />
  </>
)

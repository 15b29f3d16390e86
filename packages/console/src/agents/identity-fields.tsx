/**
 * Who an agent is: its name, its role and its prompts.
 */
import type { ReactNode } from "react"
import { TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const IdentityFields = ({ draft, change, error }: DraftFields): ReactNode => (
  <>
    <TextField
      label="Name"
      hint="Letters, digits, dots, dashes and underscores"
      pointer="/name"
      error={error}
      value={draft.name}
      onChange={(name) => change({ name })}
      isRequired
    />
    <TextField
      label="Role"
      pointer="/role"
      error={error}
      value={draft.role}
      onChange={(role) => change({ role })}
    />
    <TextField
      label="Prompt"
      hint="A Liquid template over event, object, input, agent and project: Greet {{ object.key }}."
      pointer="/prompt"
      error={error}
      value={draft.prompt}
      onChange={(prompt) => change({ prompt })}
      lines={6}
      isMono
      isRequired
    />
    <TextField
      label="System prompt"
      pointer="/systemPrompt"
      error={error}
      value={draft.systemPrompt}
      onChange={(systemPrompt) => change({ systemPrompt })}
      lines={3}
      isMono
    />
  </>
)

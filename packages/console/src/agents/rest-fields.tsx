/**
 * What the form has no field for, as JSON, and whether the agent is enabled.
 */
import type { ReactNode } from "react"
import { TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const RestFields = ({ draft, change }: DraftFields): ReactNode => (
  <>
    <TextField
      label="Other fields"
      hint="A JSON object: defaultTimeoutMs, reviewPolicy, retryPolicy, flowType, steps, …"
      value={draft.rest}
      onChange={(rest) => change({ rest })}
      lines={5}
      isMono
    />
    <label className="flex items-center gap-2 text-sm">
      <input
        type="checkbox"
        checked={draft.enabled}
        onChange={({ target }) => change({ enabled: target.checked })}
        className="size-4 accent-leaf"
      />
      Enabled: it wakes for what it listens to
    </label>
  </>
)

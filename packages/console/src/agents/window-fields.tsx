/**
 * How much of a long log the agent's model is shown.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const WindowFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <div className="grid gap-4 sm:grid-cols-2">
    <ChoiceField
      label="When a conversation or run grows long"
      {...at("/reducer/type")}
      value={draft.reducer}
      choices={[
        { value: "", label: "Default: sum up above 100,000 tokens" },
        { value: "summarizing", label: "Sum up the oldest messages" },
        { value: "truncating", label: "Drop the oldest messages" },
        { value: "whole", label: "Show everything" }
      ]}
      onChange={(reducer) => change({ reducer })}
    />
    {(draft.reducer === "summarizing" || draft.reducer === "truncating") && (
      <TextField
        label="Tokens shown, at most"
        hint="Estimated; such as 100000"
        {...at("/reducer/maxTokens")}
        value={draft.windowTokens}
        onChange={(windowTokens) => change({ windowTokens })}
      />
    )}
    {draft.reducer === "truncating" && (
      <TextField
        label="Messages shown, at most"
        hint="Empty is unbounded"
        {...at("/reducer/maxMessages")}
        value={draft.windowMessages}
        onChange={(windowMessages) => change({ windowMessages })}
      />
    )}
    {draft.reducer === "summarizing" && (
      <>
        <TextField
          label="Tokens of the newest messages kept"
          hint="At most half of the tokens shown"
          {...at("/reducer/keepTokens")}
          value={draft.keepTokens}
          onChange={(keepTokens) => change({ keepTokens })}
        />
        <TextField
          label="Instructions for the summary"
          hint="Empty is a general one"
          {...at("/reducer/instructions")}
          value={draft.summaryInstructions}
          onChange={(summaryInstructions) => change({ summaryInstructions })}
          lines={2}
        />
      </>
    )}
  </div>
)

/**
 * How much of a long log the agent's model is shown.
 */
import type { ReactNode } from "react"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { DraftFields } from "./draft-fields.ts"

export const WindowFields = ({ draft, change, at }: DraftFields): ReactNode => (
  <div className="grid gap-4 sm:grid-cols-2">
    <ChoiceField
      label="Long conversations and runs"
      {...at("/reducer/type")}
      value={draft.reducer}
      choices={[
        { value: "", label: "Default: summarize above 100,000 tokens" },
        { value: "summarizing", label: "Summarize the oldest messages" },
        { value: "truncating", label: "Drop the oldest messages" },
        { value: "whole", label: "Keep everything" }
      ]}
      onChange={(reducer) => change({ reducer })}
    />
    {(draft.reducer === "summarizing" || draft.reducer === "truncating") && (
      <TextField
        label="Max tokens"
        hint="Estimated, e.g. 100000"
        {...at("/reducer/maxTokens")}
        value={draft.windowTokens}
        onChange={(windowTokens) => change({ windowTokens })}
      />
    )}
    {draft.reducer === "truncating" && (
      <TextField
        label="Max messages"
        hint="Leave empty for no limit"
        {...at("/reducer/maxMessages")}
        value={draft.windowMessages}
        onChange={(windowMessages) => change({ windowMessages })}
      />
    )}
    {draft.reducer === "summarizing" && (
      <>
        <TextField
          label="Tokens of recent messages to keep"
          hint="Max half of max tokens"
          {...at("/reducer/keepTokens")}
          value={draft.keepTokens}
          onChange={(keepTokens) => change({ keepTokens })}
        />
        <TextField
          label="Summary instructions"
          hint="Leave empty for the default"
          {...at("/reducer/instructions")}
          value={draft.summaryInstructions}
          onChange={(summaryInstructions) => change({ summaryInstructions })}
          lines={2}
        />
      </>
    )}
  </div>
)

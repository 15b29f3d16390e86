/**
 * Lets a run go on that has used what it may: why it rests, what it may use from now on, and what is said to it.
 */
import type { Run } from "@tropism/domain/run"
import { type ReactNode, useState } from "react"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { ChainBound } from "./chain-bound.tsx"
import { changedLimits, type LimitTexts, limitTextsOf } from "./resume-limits.ts"
import { outcomeText } from "./run-words.ts"

interface ResumeDialogProps {
  readonly run: Run
  readonly isBusy: boolean
  readonly error: unknown
  readonly onResume: (body: Readonly<Record<string, unknown>>) => void
  readonly onClose: () => void
}

export const ResumeDialog = ({ run, isBusy, error, onResume, onClose }: ResumeDialogProps): ReactNode => {
  const [texts, setTexts] = useState(() => limitTextsOf(run.limits))
  const [message, setMessage] = useState("")
  const before = limitTextsOf(run.limits)
  return (
    <FormDialog
      title="Resume run"
      verb="Resume"
      isBusy={isBusy}
      error={error}
      pointers={[...fields.map(({ pointer }) => pointer), "/message"]}
      onSubmit={() => onResume({ ...changedLimits(before, texts), ...(message !== "" && { message }) })}
      onClose={onClose}
    >
      <p data-pause-reason={run.pauseReason} className="text-sm">
        {outcomeText(run)} {run.rootEventId !== null && <ChainBound rootEventId={run.rootEventId} />}
      </p>
      <p className="text-xs text-ink-soft">Empty and unchanged fields keep their current values.</p>
      {fields.map(({ name, label, pointer }) => (
        <TextField
          key={name}
          label={label}
          pointer={pointer}
          error={error}
          type="number"
          value={texts[name]}
          onChange={(text) => setTexts((now) => ({ ...now, [name]: text }))}
        />
      ))}
      <TextField
        label="Message to the agent (optional)"
        hint="The agent reads this before it continues"
        pointer="/message"
        error={error}
        value={message}
        onChange={setMessage}
        lines={2}
      />
    </FormDialog>
  )
}

const fields: ReadonlyArray<{
  readonly name: keyof LimitTexts
  readonly label: string
  readonly pointer: string
}> = [
  { name: "maxTokens", label: "Max tokens in total", pointer: "/maxTokens" },
  { name: "maxCostUsd", label: "Max cost in total ($)", pointer: "/maxCostUsd" },
  { name: "maxSteps", label: "Max additional steps", pointer: "/maxSteps" },
  { name: "timeoutSeconds", label: "Timeout (seconds)", pointer: "/timeoutMs" }
]

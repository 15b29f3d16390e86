/**
 * How the prompts of a run follow one another: one alone, steps in their order, or a loop.
 */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import type { At, DraftFields } from "./draft-fields.ts"
import { emptyStep, type StepRow } from "./flow-draft.ts"
import { GroupFault } from "./group-fault.tsx"
import { ModelParts } from "./model-parts.tsx"
import { useRowFocus } from "./use-row-focus.ts"

export const FlowFields = (fields: DraftFields): ReactNode => {
  const { draft, change, at } = fields
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="Flow"
          hint="Order of the prompts in a run"
          {...at("/flowType")}
          value={draft.flowType}
          choices={[
            { value: "single", label: "Single: the prompt once" },
            { value: "sequential", label: "Sequential: steps in order" },
            { value: "loop", label: "Loop: repeat until the agent ends it" }
          ]}
          onChange={(flowType) => change({ flowType })}
        />
        {draft.flowType === "loop" && (
          <TextField
            label="Max iterations"
            hint="Default: 10"
            {...at("/maxIterations")}
            value={draft.maxIterations}
            onChange={(maxIterations) => change({ maxIterations })}
          />
        )}
      </div>
      {draft.flowType !== "single" && <StepList {...fields} />}
    </>
  )
}

const StepList = ({ draft, change, at }: DraftFields): ReactNode => {
  const { steps } = draft
  const group = useRowFocus(steps.length)
  const put = (index: number, changes: Partial<StepRow>) =>
    change({ steps: steps.map((row, each) => (each === index ? { ...row, ...changes } : row)) })
  const swap = (index: number) =>
    change({
      steps: steps.map((row, each) =>
        each === index ? (steps[index - 1] ?? row) : each === index - 1 ? (steps[index] ?? row) : row
      )
    })
  return (
    <div ref={group} role="group" aria-label="Steps" className="grid gap-3">
      <div>
        <p className="text-sm font-medium">Steps</p>
        <p className="text-xs text-ink-faint">
          {draft.flowType === "loop"
            ? "Steps of each iteration. Without steps, the loop repeats the agent's prompt."
            : "Each step can use the output of earlier steps: {{ steps.NAME.output }}"}
        </p>
      </div>
      {steps.map((row, index) => (
        <StepFieldset
          // oxlint-disable-next-line react/no-array-index-key -- a row is its place: two may have no name yet
          key={index}
          index={index}
          row={row}
          at={at}
          onChange={(changes) => put(index, changes)}
          onEarlier={() => swap(index)}
          onRemove={() => change({ steps: steps.filter((_, each) => each !== index) })}
        />
      ))}
      <GroupFault label="Steps" place={at("/steps")} apart={steps.map((_, index) => `/steps/${index}`)} />
      <p>
        <Button data-testid="add-step" onClick={() => change({ steps: [...steps, emptyStep] })}>
          {steps.length === 0 ? "Add a step" : "Add another step"}
        </Button>
      </p>
    </div>
  )
}

interface StepFieldsetProps {
  readonly index: number
  readonly row: StepRow
  readonly at: At
  readonly onChange: (changes: Partial<StepRow>) => void
  readonly onEarlier: () => void
  readonly onRemove: () => void
}

const StepFieldset = ({ index, row, at, onChange, onEarlier, onRemove }: StepFieldsetProps): ReactNode => {
  const pointer = `/steps/${index}`
  return (
    <fieldset className="m-0 grid min-w-0 gap-4 rounded-xl border border-line p-4">
      <legend className="sr-only">Step {index + 1}</legend>
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-0 grow">
          <TextField
            label="Name"
            hint="Letters, digits and underscores"
            {...at(`${pointer}/name`)}
            value={row.name}
            onChange={(name) => onChange({ name })}
            isMono
          />
        </div>
        {index > 0 && <Button onClick={onEarlier}>Move up</Button>}
        <Button onClick={onRemove}>Remove</Button>
      </div>
      <TextField
        label="Step prompt"
        {...at(`${pointer}/prompt`)}
        value={row.prompt}
        onChange={(prompt) => onChange({ prompt })}
        lines={3}
        isMono
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <ChoiceField
          label="Step tools"
          hint="Tools available in this step"
          value={row.toolsOf}
          choices={[
            { value: "agent", label: "Same as the agent" },
            { value: "own", label: "Selected tools" }
          ]}
          onChange={(toolsOf) => onChange({ toolsOf })}
        />
        {row.toolsOf === "own" && (
          <TextField
            label="Allowed tools"
            hint="One per line. Leave empty for none."
            {...at(`${pointer}/tools`)}
            value={row.tools}
            onChange={(tools) => onChange({ tools })}
            lines={2}
            isMono
          />
        )}
      </div>
      <ModelParts
        model={row.model}
        unsaid="Same as the agent"
        pointer={`${pointer}/model`}
        at={at}
        onChange={(changes) => onChange({ model: { ...row.model, ...changes } })}
      />
    </fieldset>
  )
}

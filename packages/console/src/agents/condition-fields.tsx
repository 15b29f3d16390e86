/**
 * Which of the changes wake an agent: conditions on the object's properties, a row each.
 *
 * Rows are kept by their place, since two may say the same.
 */
import type { ReactNode } from "react"
import { Button } from "../parts/button.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { type ConditionRow, emptyRow, operatorNames } from "./condition-rows.ts"
import type { At, DraftFields } from "./draft-fields.ts"
import { useRowFocus } from "./use-row-focus.ts"

export const ConditionFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const { conditions } = draft
  const list = useRowFocus(conditions.length)
  const put = (index: number, changes: Partial<ConditionRow>) =>
    change({ conditions: conditions.map((row, each) => (each === index ? { ...row, ...changes } : row)) })
  return (
    <div ref={list} role="group" aria-label="Conditions" className="grid gap-3">
      <p className="text-sm font-medium">Conditions</p>
      {conditions.map((row, index) => (
        <ConditionFieldset
          // oxlint-disable-next-line react/no-array-index-key -- a row is its place: nothing else tells two alike apart
          key={index}
          index={index}
          row={row}
          at={at}
          onChange={(changes) => put(index, changes)}
          onRemove={() => change({ conditions: conditions.filter((_, each) => each !== index) })}
        />
      ))}
      <p>
        <Button data-testid="add-condition" onClick={() => change({ conditions: [...conditions, emptyRow] })}>
          {conditions.length === 0 ? "Add a condition" : "Add another condition"}
        </Button>
      </p>
      <TextField
        label="Only if one of these properties changed"
        hint="One per line. Leave empty for any property."
        {...at("/reactionConfig/where/changedProperties")}
        value={draft.changedProperties}
        onChange={(changedProperties) => change({ changedProperties })}
        lines={2}
        isMono
      />
    </div>
  )
}

interface ConditionFieldsetProps {
  readonly index: number
  readonly row: ConditionRow
  readonly at: At
  readonly onChange: (changes: Partial<ConditionRow>) => void
  readonly onRemove: () => void
}

const ConditionFieldset = ({ index, row, at, onChange, onRemove }: ConditionFieldsetProps): ReactNode => {
  const pointer = `/reactionConfig/where/properties/${index}`
  const isThere = row.op === "exists"
  return (
    <fieldset className="m-0 grid gap-3 border-0 p-0 sm:grid-cols-[minmax(0,1fr)_10rem_minmax(0,1fr)_auto] sm:items-start">
      <legend className="sr-only">Condition {index + 1}</legend>
      <TextField
        label="Property"
        {...at(`${pointer}/property`)}
        value={row.property}
        onChange={(property) => onChange({ property })}
        isMono
      />
      <ChoiceField
        label="Operator"
        {...at(`${pointer}/op`)}
        value={row.op}
        choices={operatorNames}
        onChange={(op) => onChange(changedOperator(row, op))}
      />
      {isThere ? (
        <ChoiceField
          label="Value"
          {...at(`${pointer}/value`)}
          value={row.value}
          choices={[
            { value: "true", label: "yes" },
            { value: "false", label: "no" }
          ]}
          onChange={(value) => onChange({ value })}
        />
      ) : (
        <TextField
          label="Value"
          {...at(`${pointer}/value`)}
          value={row.value}
          onChange={(value) => onChange({ value })}
          isMono
        />
      )}
      <Button onClick={onRemove} className="sm:mt-6">
        Remove
      </Button>
    </fieldset>
  )
}

/** What is there has no value but yes and no. */
const changedOperator = ({ op: before, value }: ConditionRow, said: string): Partial<ConditionRow> => {
  const op = operatorNames.find((each) => each.value === said)?.value ?? "eq"
  if (op === "exists") return { op, value: "true" }
  return { op, value: before === "exists" ? "" : value }
}

/**
 * Which of the changes wake an agent: conditions on the object's properties, a row each.
 *
 * Rows are kept by their place, since two may say the same; a new one gets the focus.
 */
import { type ReactNode, useEffect, useRef } from "react"
import { Button } from "../parts/button.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { type ConditionRow, emptyRow, operatorNames } from "./condition-rows.ts"
import type { DraftFields } from "./draft-fields.ts"

export const ConditionFields = ({ draft, change, error }: DraftFields): ReactNode => {
  const { conditions } = draft
  const list = useRef<HTMLDivElement>(null)
  const known = useRef(conditions.length)
  useEffect(() => {
    if (conditions.length > known.current)
      list.current?.querySelector<HTMLInputElement>("fieldset:last-of-type input")?.focus()
    known.current = conditions.length
  }, [conditions.length])
  const put = (at: number, changes: Partial<ConditionRow>) =>
    change({ conditions: conditions.map((row, index) => (index === at ? { ...row, ...changes } : row)) })
  return (
    <div ref={list} role="group" aria-label="Only where" className="grid gap-3">
      <p className="text-sm font-medium">Only where</p>
      {conditions.map((row, at) => (
        <ConditionFieldset
          // oxlint-disable-next-line react/no-array-index-key -- a row is its place: nothing else tells two alike apart
          key={at}
          at={at}
          row={row}
          error={error}
          onChange={(changes) => put(at, changes)}
          onRemove={() => change({ conditions: conditions.filter((_, index) => index !== at) })}
        />
      ))}
      <p>
        <Button onClick={() => change({ conditions: [...conditions, emptyRow] })}>
          {conditions.length === 0 ? "Add a condition" : "Add another condition"}
        </Button>
      </p>
      <TextField
        label="Only if one of these properties changed"
        hint="One a line; empty is any"
        pointer="/reactionConfig/where/changedProperties"
        error={error}
        value={draft.changedProperties}
        onChange={(changedProperties) => change({ changedProperties })}
        lines={2}
        isMono
      />
    </div>
  )
}

interface ConditionFieldsetProps {
  readonly at: number
  readonly row: ConditionRow
  readonly error: unknown
  readonly onChange: (changes: Partial<ConditionRow>) => void
  readonly onRemove: () => void
}

const ConditionFieldset = ({ at, row, error, onChange, onRemove }: ConditionFieldsetProps): ReactNode => {
  const pointer = `/reactionConfig/where/properties/${at}`
  const isThere = row.op === "exists"
  return (
    <fieldset className="m-0 grid gap-3 border-0 p-0 sm:grid-cols-[minmax(0,1fr)_10rem_minmax(0,1fr)_auto] sm:items-start">
      <legend className="sr-only">Condition {at + 1}</legend>
      <TextField
        label="Property"
        pointer={`${pointer}/property`}
        error={error}
        value={row.property}
        onChange={(property) => onChange({ property })}
        isMono
      />
      <ChoiceField
        label="Must be so"
        pointer={`${pointer}/op`}
        error={error}
        value={row.op}
        choices={operatorNames}
        onChange={(op) => onChange(changedOperator(row, op))}
      />
      {isThere ? (
        <ChoiceField
          label="Value"
          pointer={`${pointer}/value`}
          error={error}
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
          pointer={`${pointer}/value`}
          error={error}
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

/**
 * How far one root event may lead: how deep, how many runs, tokens and dollars.
 */
import { chainBounds, type ChainLimits } from "@tropism/domain/chain"
import type { Dispatch, ReactNode, SetStateAction } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { FieldLabels } from "../parts/field-labels.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { useFaultFocus } from "../parts/use-fault-focus.ts"
import { changeSettings } from "./settings-acts.ts"
import { useAct } from "../server/use-act.ts"
import { numberSent } from "../words/number-sent.ts"

const fields: ReadonlyArray<{
  readonly name: keyof ChainLimits
  readonly label: string
  readonly hint: string
}> = [
  {
    name: "maxDepth",
    label: "Max depth",
    hint: `Agents in a row after the root event. Leave empty for ${chainBounds.maxDepth.default}.`
  },
  {
    name: "maxRuns",
    label: "Max runs",
    hint: `Runs triggered by one root event. Leave empty for ${chainBounds.maxRuns.default}.`
  },
  {
    name: "maxTokens",
    label: "Max tokens",
    hint: "Input and output of all models. Leave empty for no limit."
  },
  {
    name: "maxCostUsd",
    label: "Max cost ($)",
    hint: "Requests with a known price only. Leave empty for no limit."
  }
]

/** What was typed and is not saved. */
export type TypedBounds = Partial<Record<keyof ChainLimits, string>>

const typedSince = (sent: TypedBounds, now: TypedBounds): TypedBounds =>
  Object.fromEntries(fields.flatMap(({ name }) => (now[name] === sent[name] ? [] : [[name, now[name]]])))

const textOf = (value: number | null): string => (value === null ? "" : String(value))

/** Whether something was typed that is not so already. */
export const differs = (typed: TypedBounds, limits: ChainLimits): boolean =>
  fields.some(({ name }) => (typed[name] ?? textOf(limits[name])) !== textOf(limits[name]))

interface ChainLimitsFormProps {
  readonly limits: ChainLimits
  readonly typed: TypedBounds
  readonly setTyped: Dispatch<SetStateAction<TypedBounds>>
}

export const ChainLimitsForm = ({ limits, typed, setTyped }: ChainLimitsFormProps): ReactNode => {
  const { project, isAdmin } = useConsole()
  const show = useToasts()
  const save = useAct({
    what: "Save limits",
    act: (sent: TypedBounds) => changeSettings(project.id, { chainLimits: patchOf(sent) }),
    touches: [[project.id, "settings"]],
    onDone: (_saved, sent) => {
      setTyped((now) => typedSince(sent, now))
      show({ tone: "done", title: "Saved", sentence: "The limits apply from the next event." })
    }
  })
  const form = useFaultFocus(save.error)
  if (!isAdmin)
    return (
      <DefinitionList
        items={fields.map(({ name, label }) => ({
          name: label,
          value: limits[name]?.toLocaleString("en") ?? "no limit"
        }))}
      />
    )
  const isUntouched = !differs(typed, limits)
  const pointers = fields.map(({ name }) => `/chainLimits/${name}`)
  return (
    <FieldLabels>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          save.run(typed)
        }}
        className="grid gap-4 sm:grid-cols-2"
      >
        {save.error !== null && (
          <div className="sm:col-span-2">
            <Failure error={save.error} />
          </div>
        )}
        {fields.map(({ name, label, hint }, place) => (
          <TextField
            key={name}
            label={label}
            hint={hint}
            pointer={pointers[place] ?? ""}
            error={save.error}
            value={typed[name] ?? textOf(limits[name])}
            onChange={(value) => setTyped((now) => ({ ...now, [name]: value }))}
            type="number"
          />
        ))}
        <div className="sm:col-span-2">
          <Button type="submit" disabled={save.isBusy || isUntouched}>
            Save limits
          </Button>
        </div>
      </form>
    </FieldLabels>
  )
}

/** What was typed; nothing goes back to the default, and what is no number is the server's to refuse. */
const patchOf = (typed: TypedBounds): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(typed).map(([name, text]) => [name, text.trim() === "" ? null : numberSent(text)])
  )

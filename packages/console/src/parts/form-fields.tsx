/**
 * Fields for text, choices and yes or no, all with their faults beside them.
 */
import { type ReactNode, useId } from "react"
import { controlClass, Field, type FieldWords } from "./field.tsx"

interface TextFieldProps extends FieldWords {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly isRequired?: boolean
  readonly isMono?: boolean
  /** More than one makes an area of so many lines. */
  readonly lines?: number
  /** A number is typed as text: a browser's own field for it says nothing of what it could not read. */
  readonly type?: "text" | "number" | "url" | "password"
  readonly hasFirstFocus?: boolean
  /** What is known that may be meant; of one line only. */
  readonly offered?: ReadonlyArray<string>
}

export const TextField = (props: TextFieldProps): ReactNode => {
  const { value, onChange, isRequired = false, isMono = false, lines = 1, type = "text", ...rest } = props
  const { hasFirstFocus = false, offered = [], ...words } = rest
  const shared = {
    value,
    required: isRequired,
    spellCheck: false,
    autoComplete: "off",
    ...(hasFirstFocus && { "data-first-focus": true })
  }
  return (
    <Field {...words}>
      {(control) =>
        lines > 1 ? (
          <textarea
            {...control}
            {...shared}
            rows={lines}
            onChange={(event) => onChange(event.target.value)}
            className={`${controlClass} py-2 ${isMono ? "font-mono" : ""}`}
          />
        ) : (
          <>
            <input
              {...control}
              {...shared}
              {...(type === "number" ? { inputMode: "decimal" } : { type })}
              {...(offered.length > 0 && { list: `${control.id}-offered` })}
              onChange={(event) => onChange(event.target.value)}
              className={`${controlClass} h-9 ${isMono ? "font-mono" : ""}`}
            />
            {offered.length > 0 && (
              <datalist id={`${control.id}-offered`}>
                {offered.map((value) => (
                  <option key={value} value={value}>
                    {value}
                  </option>
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Field>
  )
}

interface ChoiceFieldProps extends FieldWords {
  readonly value: string
  readonly choices: ReadonlyArray<{ readonly value: string; readonly label: string }>
  readonly onChange: (value: string) => void
}

export const ChoiceField = ({ value, choices, onChange, ...words }: ChoiceFieldProps): ReactNode => (
  <Field {...words}>
    {(control) => (
      <select
        {...control}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className={`${controlClass} h-9`}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    )}
  </Field>
)

interface CheckFieldProps {
  readonly label: string
  /** Where the value stands in what is sent: `/enabled`. */
  readonly pointer?: string
  readonly hint?: ReactNode
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
}

export const CheckField = ({ label, pointer, hint, isChecked, onChange }: CheckFieldProps): ReactNode => {
  const hintId = useId()
  return (
    <div data-field={pointer} className="flex items-start gap-3 text-sm">
      <label className="flex items-center gap-3">
        <input
          type="checkbox"
          checked={isChecked}
          onChange={(event) => onChange(event.target.checked)}
          {...(hint !== undefined && { "aria-describedby": hintId })}
          className="size-4 accent-leaf"
        />
        {label}
      </label>
      {hint !== undefined && (
        <span id={hintId} className="text-xs leading-6 text-ink-faint">
          {hint}
        </span>
      )}
    </div>
  )
}

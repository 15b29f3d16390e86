/**
 * Filters over a list, kept in the address; a link shows the same rows to somebody else.
 */
import { type ReactNode, useId } from "react"
import { instantOf, localTimeOf } from "../words/local-time.ts"
import { cutText } from "../words/cut-text.ts"
import { Button } from "./button.tsx"
import { SearchIcon } from "./icons.tsx"
import { useAddress } from "./use-address.ts"
import { useTyped } from "./use-typed.ts"
import { Visible } from "./visible.tsx"

export interface Choice {
  readonly value: string
  readonly label: string
}

export type Filter =
  | { readonly type: "text"; readonly name: string; readonly label: string; readonly hint?: string }
  /** An instant, chosen on the reader's own clock. */
  | { readonly type: "time"; readonly name: string; readonly label: string }
  | {
      readonly type: "choice"
      readonly name: string
      readonly label: string
      readonly choices: ReadonlyArray<Choice>
    }
  /** In which order rows come: the first choice, which the address does not name, or another. It leaves no row away. */
  | {
      readonly type: "order"
      readonly name: string
      readonly label: string
      readonly choices: ReadonlyArray<Choice>
    }

interface FilterBarProps {
  /** What is filtered. */
  readonly label: string
  readonly filters: ReadonlyArray<Filter>
}

export const FilterBar = ({ label, filters }: FilterBarProps): ReactNode => {
  const [address, change] = useAddress()
  const narrowing = filters.filter(({ type }) => type !== "order")
  const isFiltered = narrowing.some(({ name }) => address[name] !== undefined)
  return (
    <search aria-label={label} className="mb-5 flex flex-wrap items-center gap-2">
      {filters.map((filter) => (
        <OneFilter
          key={filter.name}
          filter={filter}
          value={address[filter.name]}
          onChange={(value) => change({ [filter.name]: value })}
        />
      ))}
      {isFiltered && (
        <Button
          weight="quiet"
          onClick={() => change(Object.fromEntries(narrowing.map(({ name }) => [name, undefined])))}
        >
          Show all
        </Button>
      )}
      {filters.flatMap(({ type, name, label: what }) => {
        const value = address[name]
        return type !== "time" || value === undefined || instantOf(value) !== undefined
          ? []
          : [
              <p key={name} role="alert" className="basis-full text-sm text-removed-ink">
                <Visible text={`“${cutText(value, 1, 60)}” is not a valid time, so “${what}” is ignored.`} />
              </p>
            ]
      })}
    </search>
  )
}

interface OneFilterProps<F extends Filter> {
  readonly filter: F
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

type Of<T extends Filter["type"]> = OneFilterProps<Extract<Filter, { readonly type: T }>>

const OneFilter = ({ filter, ...rest }: OneFilterProps<Filter>): ReactNode => {
  if (filter.type === "text") return <TextFilter filter={filter} {...rest} />
  if (filter.type === "time") return <TimeFilter filter={filter} {...rest} />
  if (filter.type === "order") return <OrderChoice filter={filter} {...rest} />
  return <ChoiceFilter filter={filter} {...rest} />
}

const ChoiceFilter = ({ filter, value = "", onChange }: Of<"choice">): ReactNode => (
  <select
    aria-label={filter.label}
    value={value}
    onChange={(event) => onChange(event.target.value)}
    className={selectClass}
  >
    <option value="">{filter.label}: all</option>
    {filter.choices.map((choice) => (
      <option key={choice.value} value={choice.value}>
        {choice.label}
      </option>
    ))}
    {/* A link may say what is no choice here: what is shown is what is filtered by. */}
    {value !== "" && !filter.choices.some((choice) => choice.value === value) && (
      <option value={value}>{value}</option>
    )}
  </select>
)

const OrderChoice = ({ filter, value = "", onChange }: Of<"order">): ReactNode => {
  const { label, choices } = filter
  return (
    <select
      aria-label={label}
      value={choices.some((choice) => choice.value === value) ? value : ""}
      onChange={(event) => onChange(event.target.value)}
      className={selectClass}
    >
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  )
}

/** Its width is its own: choices that come later would make it jump. */
const selectClass = "h-9 w-full rounded-lg border border-line-strong bg-surface px-2.5 text-sm sm:w-44"

const TextFilter = ({ filter, value = "", onChange }: Of<"text">): ReactNode => {
  const id = useId()
  const typed = useTyped(value, onChange)
  return (
    <label htmlFor={id} className="relative w-full sm:w-72">
      <span className="sr-only">{filter.label}</span>
      <SearchIcon size="small" className="absolute top-1/2 left-3 -translate-y-1/2 text-ink-faint" />
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellCheck={false}
        placeholder={filter.hint ?? filter.label}
        {...typed}
        className="h-9 w-full rounded-lg border border-line-strong bg-surface pr-3 pl-8.5 text-sm placeholder:text-ink-faint"
      />
    </label>
  )
}

const TimeFilter = ({ filter, value, onChange }: Of<"time">): ReactNode => {
  const id = useId()
  const typed = useTyped(localTimeOf(value), (local) => onChange(instantOf(local)))
  return (
    <label htmlFor={id} className="flex items-center gap-1.5 text-sm text-ink-soft">
      {filter.label}
      <input
        id={id}
        type="datetime-local"
        {...typed}
        className="h-9 rounded-lg border border-line-strong bg-surface px-2.5 text-sm text-ink"
      />
    </label>
  )
}

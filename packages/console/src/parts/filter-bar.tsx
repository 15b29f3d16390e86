/**
 * Filters over a list, kept in the address; a link shows the same rows to somebody else.
 */
import { type ReactNode, useId, useState } from "react"
import { limits } from "../limits.ts"
import { Button } from "./button.tsx"
import { SearchIcon } from "./icons.tsx"
import { useAddress } from "./use-address.ts"
import { useLater } from "./use-later.ts"

export type Filter =
  | { readonly type: "text"; readonly name: string; readonly label: string; readonly hint?: string }
  | {
      readonly type: "choice"
      readonly name: string
      readonly label: string
      readonly choices: ReadonlyArray<{ readonly value: string; readonly label: string }>
    }

interface FilterBarProps {
  /** What is filtered. */
  readonly label: string
  readonly filters: ReadonlyArray<Filter>
}

export const FilterBar = ({ label, filters }: FilterBarProps): ReactNode => {
  const [address, change] = useAddress()
  const isFiltered = filters.some(({ name }) => address[name] !== undefined)
  return (
    <search aria-label={label} className="mb-5 flex flex-wrap items-center gap-2">
      {filters.map((filter) =>
        filter.type === "text" ? (
          <TextFilter
            key={filter.name}
            filter={filter}
            value={address[filter.name] ?? ""}
            onChange={(value) => change({ [filter.name]: value })}
          />
        ) : (
          <select
            key={filter.name}
            aria-label={filter.label}
            value={address[filter.name] ?? ""}
            onChange={(event) => change({ [filter.name]: event.target.value })}
            className="h-9 max-w-full rounded-lg border border-line-strong bg-surface px-2.5 text-sm"
          >
            <option value="">{filter.label}: all</option>
            {filter.choices.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )
      )}
      {isFiltered && (
        <Button
          weight="quiet"
          onClick={() => change(Object.fromEntries(filters.map(({ name }) => [name, undefined])))}
        >
          Show all
        </Button>
      )}
    </search>
  )
}

interface TextFilterProps {
  readonly filter: Filter & { readonly type: "text" }
  readonly value: string
  readonly onChange: (value: string) => void
}

/** What is typed goes to the address when nobody has typed for a moment, and at once when they leave. */
const TextFilter = ({ filter, value, onChange }: TextFilterProps): ReactNode => {
  const [typed, setTyped] = useState<string>()
  const id = useId()
  const later = useLater(limits.searchPauseMs)
  return (
    <label htmlFor={id} className="relative min-w-0 grow sm:max-w-xs">
      <span className="sr-only">{filter.label}</span>
      <SearchIcon size="small" className="absolute top-1/2 left-3 -translate-y-1/2 text-ink-faint" />
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellCheck={false}
        value={typed ?? value}
        placeholder={filter.hint ?? filter.label}
        onChange={(event) => {
          const { value } = event.target
          setTyped(value)
          later(() => onChange(value))
        }}
        onBlur={() => {
          if (typed !== undefined && typed !== value) onChange(typed)
          setTyped(undefined)
        }}
        className="h-9 w-full rounded-lg border border-line-strong bg-surface pr-3 pl-8.5 text-sm placeholder:text-ink-faint"
      />
    </label>
  )
}

/**
 * What an event changed, property by property: before → after.
 */
import { canonicalJson, type Properties } from "@tropism/domain/json"
import type { Schema } from "effect"
import type { ReactNode } from "react"
import { ArrowIcon } from "../parts/icons.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { valueText } from "../suggestion/property-diff.ts"

interface DifferenceRowsProps {
  readonly before: Properties
  readonly after: Properties
}

export const DifferenceRows = ({ before, after }: DifferenceRowsProps): ReactNode => {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => textOf(before[name]) !== textOf(after[name])
  )
  if (names.length === 0) return <p className="text-sm text-ink-soft">No property is different.</p>
  return (
    <dl className="divide-y divide-line rounded-lg border border-line bg-surface">
      {names.map((name) => (
        <div
          key={name}
          className="grid gap-x-4 gap-y-1.5 px-3.5 py-2.5 sm:grid-cols-[minmax(7rem,11rem)_minmax(0,1fr)]"
        >
          <dt className="pt-0.5 text-xs text-ink-soft">
            <Visible text={name} exact />
          </dt>
          <dd className="flex min-w-0 flex-wrap items-center gap-2 font-mono text-xs">
            <Side word="before" value={before[name]} className="bg-removed text-removed-ink" />
            <ArrowIcon size="small" className="text-ink-faint" />
            <Side word="after" value={after[name]} className="bg-added text-added-ink" />
          </dd>
        </div>
      ))}
    </dl>
  )
}

const textOf = (value: Schema.Json | undefined): string => (value === undefined ? "" : canonicalJson(value))

interface SideProps {
  readonly word: string
  readonly value: Schema.Json | undefined
  readonly className: string
}

const Side = ({ word, value, className }: SideProps): ReactNode =>
  value === undefined ? (
    <span className="font-sans text-ink-faint">{word === "before" ? "not there" : "removed"}</span>
  ) : (
    <span className={`min-w-0 rounded-md px-1.5 py-0.5 whitespace-pre-wrap ${className}`}>
      <span className="sr-only">{word} </span>
      <LongText text={valueText(value)} exact />
    </span>
  )

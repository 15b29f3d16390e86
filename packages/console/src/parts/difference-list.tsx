/**
 * What differs between two states, name by name: before, and after.
 */
import type { Schema } from "effect"
import type { ReactNode } from "react"
import { valueText } from "../suggestion/property-diff.ts"
import { ArrowIcon } from "./icons.tsx"
import { LongText } from "./long-text.tsx"
import { Visible } from "./visible.tsx"

export interface Difference {
  /** A property, or a JSON pointer. */
  readonly name: string
  /** Absent where it was not there. */
  readonly before?: Schema.Json
  /** Absent where it is not there any more. */
  readonly after?: Schema.Json
}

interface DifferenceListProps {
  readonly rows: ReadonlyArray<Difference>
  /** What was there before is not known, so only what is asked for is shown. */
  readonly isAfterAlone?: boolean
}

export const DifferenceList = ({ rows, isAfterAlone = false }: DifferenceListProps): ReactNode =>
  rows.length === 0 ? (
    <p className="text-sm text-ink-soft">No differences</p>
  ) : (
    <dl
      aria-label="Differences"
      className="m-0 divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface"
    >
      {rows.map(({ name, before, after }) => (
        <div
          key={name}
          className="grid gap-x-4 gap-y-1.5 px-3.5 py-2.5 sm:grid-cols-[minmax(7rem,12rem)_minmax(0,1fr)]"
        >
          <dt className="pt-0.5 text-xs [overflow-wrap:anywhere] text-ink-soft">
            <Visible text={name} exact />
          </dt>
          <dd className="m-0 flex min-w-0 flex-wrap items-center gap-2 font-mono text-xs">
            {isAfterAlone ? null : before === undefined ? (
              <span className="font-sans text-ink-faint">not set</span>
            ) : (
              <del className="min-w-0 rounded-md bg-removed px-1.5 py-0.5 whitespace-pre-wrap text-removed-ink no-underline">
                <span className="sr-only">before </span>
                <LongText text={valueText(before)} exact />
              </del>
            )}
            {!isAfterAlone && <ArrowIcon size="small" className="text-ink-faint" />}
            {after === undefined ? (
              <span className="font-sans text-ink-faint">removed</span>
            ) : (
              <ins className="min-w-0 rounded-md bg-added px-1.5 py-0.5 whitespace-pre-wrap text-added-ink no-underline">
                <span className="sr-only">after </span>
                <LongText text={valueText(after)} exact />
              </ins>
            )}
          </dd>
        </div>
      ))}
    </dl>
  )

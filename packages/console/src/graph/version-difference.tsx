/**
 * What differs between two versions, property by property.
 */
import type { Schema } from "effect"
import type { ReactNode } from "react"
import { LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { type PropertyRow, valueText } from "../suggestion/property-diff.ts"

export const VersionDifference = ({ rows }: { readonly rows: ReadonlyArray<PropertyRow> }): ReactNode =>
  rows.length === 0 ? (
    <p className="text-sm text-ink-soft">No property differs.</p>
  ) : (
    <dl
      aria-label="Differences"
      className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface"
    >
      {rows.map(({ path, before, after }) => (
        <div
          key={path.join("\u0000")}
          className="grid gap-x-4 gap-y-1.5 px-3.5 py-2.5 sm:grid-cols-[minmax(7rem,12rem)_minmax(0,1fr)]"
        >
          <dt className="text-xs [overflow-wrap:anywhere] text-ink-soft">
            {path.map((name) => (
              <Visible key={name} text={name} exact />
            ))}
          </dt>
          <dd className="m-0 grid min-w-0 gap-1 font-mono text-xs">
            {before !== undefined && (
              <del className="w-fit max-w-full rounded-md bg-removed px-1.5 py-0.5 text-removed-ink no-underline">
                <Side word="before" sign="−" value={before} />
              </del>
            )}
            {after !== undefined && (
              <ins className="w-fit max-w-full rounded-md bg-added px-1.5 py-0.5 text-added-ink no-underline">
                <Side word="after" sign="+" value={after} />
              </ins>
            )}
          </dd>
        </div>
      ))}
    </dl>
  )

interface SideProps {
  readonly word: string
  readonly sign: string
  readonly value: Schema.Json
}

const Side = ({ word, sign, value }: SideProps): ReactNode => (
  <>
    <span className="sr-only">{word} </span>
    <span aria-hidden="true" className="mr-1.5 opacity-70 select-none">
      {sign}
    </span>
    <LongText text={valueText(value)} exact />
  </>
)

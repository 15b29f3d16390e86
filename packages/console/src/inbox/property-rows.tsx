/**
 * Old and new, property by property.
 */
import { canonicalJson, type Properties } from "@tropism/domain/json"
import type { SuggestionTask } from "@tropism/domain/task"
import type { Schema } from "effect"
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { ArrowIcon, CautionIcon } from "../parts/icons.tsx"
import { isLongText, LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { type PropertyRow, valueAt, valueText } from "../suggestion/property-diff.ts"
import { isInConflict } from "../suggestion/staleness.ts"
import { textDifference } from "../suggestion/text-difference.ts"
import { visiblePieces } from "../words/visible-text.ts"
import { LongDifference, type Parts } from "./long-difference.tsx"

interface PropertyRowsProps {
  readonly rows: ReadonlyArray<PropertyRow>
  readonly task: Pick<SuggestionTask, "staleness">
  /** What the agent saw, where the target has moved since. */
  readonly seen: Properties | undefined
}

export const PropertyRows = ({ rows, task, seen }: PropertyRowsProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const hiddenCount = rows.length > limits.maxDiffRows + 1 && !isOpen ? rows.length - limits.maxDiffRows : 0
  const shown = hiddenCount === 0 ? rows : rows.slice(0, limits.maxDiffRows)
  return (
    <div>
      <dl className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface">
        {shown.map((row) => (
          <Row key={JSON.stringify(row.path)} row={row} hasMoved={isInConflict(task, row.path)} seen={seen} />
        ))}
      </dl>
      {hiddenCount > 0 && (
        <button
          type="button"
          onClick={() => setIsOpen(true)}
          className="mt-2 rounded text-xs font-medium text-leaf underline-offset-2 hover:underline"
        >
          Show {hiddenCount} more properties
        </button>
      )}
    </div>
  )
}

interface RowProps {
  readonly row: PropertyRow
  readonly hasMoved: boolean
  readonly seen: Properties | undefined
}

const Row = ({ row, hasMoved, seen }: RowProps): ReactNode => (
  <div className="grid gap-x-4 gap-y-1.5 px-3.5 py-2.5 sm:grid-cols-[minmax(7rem,11rem)_minmax(0,1fr)]">
    <dt className="pt-0.5 text-xs text-ink-soft">
      {row.path.map((name, depth) => (
        <span key={depth}>
          {depth > 0 && <span className="px-1 text-ink-faint">›</span>}
          <Visible text={name} exact />
        </span>
      ))}
    </dt>
    <dd className="min-w-0 font-mono text-xs">
      <Difference row={row} />
      {hasMoved && <Seen row={row} seen={seen} />}
    </dd>
  </div>
)

interface SeenProps {
  readonly row: PropertyRow
  readonly seen: Properties | undefined
}

/** What the agent saw, where it differs from what stands there now; inside a nested property another part may have moved. */
const Seen = ({ row, seen }: SeenProps): ReactNode => {
  const before = seen && valueAt(seen, row.path)
  const isSame =
    before !== undefined && row.before !== undefined && canonicalJson(before) === canonicalJson(row.before)
  if (isSame || (before === undefined && row.before === undefined)) return null
  return (
    <p
      data-testid="seen-by-agent"
      className="mt-1.5 flex items-start gap-1.5 font-sans text-xs text-caution-ink"
    >
      <CautionIcon size="small" className="mt-0.5" />
      <span className="min-w-0">
        {before === undefined ? (
          "Not set when the agent read it."
        ) : (
          <>
            The agent saw{" "}
            <span className="font-mono">
              <LongText text={valueText(before)} exact />
            </span>
          </>
        )}
      </span>
    </p>
  )
}

const Difference = ({ row }: { readonly row: PropertyRow }): ReactNode => {
  const { before, after } = row
  if (row.kind === "kept") {
    return (
      <span className="font-sans text-ink-faint">
        unchanged{after !== undefined && ": "}
        {after !== undefined && (
          <span className="font-mono">
            <LongText text={valueText(after)} exact />
          </span>
        )}
      </span>
    )
  }
  if (after === undefined && before === undefined)
    return <span className="font-sans text-ink-faint">removed</span>
  if (after === undefined) return <Old value={before ?? null} sign />
  if (before === undefined) return <New value={after} sign />
  const [old, young] = [valueText(before), valueText(after)]
  const isCut = isLongText(old) || isLongText(young)
  // What is cut off is cut around the difference, however little the two share.
  const parted = isCut
    ? textDifference(old, young, 0)
    : typeof before === "string" && typeof after === "string"
      ? textDifference(old, young)
      : undefined
  const isLong = old.length > 44 || young.length > 44
  return (
    <div className={isLong ? "grid gap-1" : "flex flex-wrap items-center gap-x-2 gap-y-1"}>
      <Old value={before} sign={isLong} parts={parted && [parted.start, parted.before, parted.end]} />
      {!isLong && <ArrowIcon size="small" className="text-ink-faint" />}
      <New value={after} sign={isLong} parts={parted && [parted.start, parted.after, parted.end]} />
    </div>
  )
}

interface SideProps {
  readonly value: Schema.Json
  /** Shows − or +, for where no arrow says which side is which. */
  readonly sign: boolean
  readonly parts?: Parts | undefined
}

const Old = ({ value, sign, parts }: SideProps): ReactNode => (
  <del className="flex w-fit max-w-full rounded-md bg-removed px-1.5 py-0.5 text-removed-ink no-underline">
    <span className="sr-only">now </span>
    {sign && <Sign>−</Sign>}
    <Side value={value} parts={parts} mark="bg-removed-strong" />
  </del>
)

const New = ({ value, sign, parts }: SideProps): ReactNode => (
  <ins className="flex w-fit max-w-full rounded-md bg-added px-1.5 py-0.5 text-added-ink no-underline">
    <span className="sr-only">suggested </span>
    {sign && <Sign>+</Sign>}
    <Side value={value} parts={parts} mark="bg-added-strong" />
  </ins>
)

const Sign = ({ children }: { readonly children: string }): ReactNode => (
  <span aria-hidden="true" className="mr-1.5 opacity-70 select-none">
    {children}
  </span>
)

interface SideTextProps {
  readonly value: Schema.Json
  readonly parts: Parts | undefined
  readonly mark: string
}

/** A short text with hidden characters is shown in one piece, because its ends matter. */
const Side = ({ value, parts, mark }: SideTextProps): ReactNode => {
  const text = valueText(value)
  const isPlain = visiblePieces(text, { exact: true }).every(({ name }) => name === undefined)
  return (
    <span className="min-w-0 whitespace-pre-wrap">
      {parts !== undefined && isLongText(text) ? (
        <LongDifference text={text} parts={parts} mark={mark} />
      ) : parts !== undefined && isPlain ? (
        <>
          <Visible text={parts[0]} />
          {parts[1] !== "" && (
            <span className={`rounded-sm ${mark}`}>
              <Visible text={parts[1]} />
            </span>
          )}
          <Visible text={parts[2]} />
        </>
      ) : (
        <LongText text={text} exact />
      )}
    </span>
  )
}

/**
 * Records on standard output: a table for a person, JSON for a program.
 */
import { Effect } from "effect"
import { notice } from "./notice.ts"
import { JsonFlag } from "./settings.ts"
import { Screen } from "./terminal/screen.ts"
import { type Column, renderTable } from "./terminal/table.ts"
import { printable } from "./terminal/text.ts"

/** Prints one JSON document when `--json` was given, else what the alternative prints. */
export const printOr = <E, R>(json: unknown, human: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    if (yield* JsonFlag) yield* screen.print(JSON.stringify(json, null, 2))
    else yield* human
  })

/** Prints a list; `nothing` is the sentence for an empty one. */
export const printRecords = <A>(options: {
  readonly records: ReadonlyArray<A>
  readonly columns: ReadonlyArray<Column<A>>
  readonly nothing: string
  /** Whether there is more than a limit let through; a list without one is here whole. */
  readonly hasMore?: boolean
}) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const table = { paint: screen.paint, width: yield* screen.width }
    yield* printOr(
      options.records,
      options.records.length === 0
        ? screen.print(options.nothing)
        : screen.print(...renderTable(options.records, options.columns, table))
    )
    if (options.hasMore === true) yield* noticeMore(`newest ${options.records.length}`)
  })

/** Says that there is more than was printed. */
export const noticeMore = (printed: string) => notice(`The ${printed}; --limit shows more.`)

/** A name, a value that anybody may have written, and how to paint it. */
export type Fact = readonly [name: string, value: string, paint?: (text: string) => string]

/** Prints names and values, aligned; values that are empty are left out. */
export const printFacts = (facts: ReadonlyArray<Fact>) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const shown = facts.filter(([, value]) => value !== "")
    const width = Math.max(...shown.map(([name]) => name.length))
    yield* screen.print(
      ...shown.map(([name, value, paint]) => {
        const text = printable(value)
        return `${screen.paint.dim(name.padEnd(width))}  ${paint ? paint(text) : text}`
      })
    )
  })

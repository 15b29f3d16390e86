/**
 * Records on standard output: a table for a person, JSON for a program.
 */
import { Effect } from "effect"
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
  readonly hasMore: boolean
}) =>
  printOr(
    options.records,
    Effect.gen(function* () {
      const screen = yield* Screen
      if (options.records.length === 0) return yield* screen.print(options.nothing)
      yield* screen.print(
        ...renderTable(options.records, options.columns, { paint: screen.paint, width: yield* screen.width })
      )
      if (options.hasMore)
        yield* screen.print(screen.paint.dim(`The newest ${options.records.length}; --limit shows more.`))
    })
  )

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

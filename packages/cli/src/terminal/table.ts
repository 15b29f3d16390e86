/**
 * Records as aligned columns.
 *
 * Cells come in unpainted, so that widths are counted in what is seen; a
 * column's paint is put on after the padding. Only a column that says it may
 * shrink is cut, and only where the width of the terminal is known.
 */
import type { Paint } from "./paint.ts"
import { displayWidth, cutEnd, cutStart, pad, printable } from "./text.ts"

export interface Column<A> {
  readonly title: string
  readonly cell: (record: A) => string
  readonly align?: "left" | "right"
  /** Which end of a cell is cut when the table is too wide; a column without it keeps its width. */
  readonly shrinks?: "end" | "start"
  readonly paint?: (record: A) => (text: string) => string
}

const gap = "  "
const leastWidth = 8

/** Renders records as lines, the first being the titles; no records are no lines. */
export const renderTable = <A>(
  records: ReadonlyArray<A>,
  columns: ReadonlyArray<Column<A>>,
  options: { readonly paint: Paint; readonly width: number | undefined }
): ReadonlyArray<string> => {
  if (records.length === 0) return []
  const rows = records.map((record) => columns.map((column) => printable(column.cell(record))))
  const widths = shrink(
    columns,
    columns.map((column, index) =>
      Math.max(displayWidth(column.title), ...rows.map((row) => displayWidth(row[index] ?? "")))
    ),
    options.width
  )
  const line = (cells: ReadonlyArray<string>, painted: (column: Column<A>, text: string) => string): string =>
    columns
      .map((column, index) => {
        const width = widths[index] ?? 0
        const text = (column.shrinks === "start" ? cutStart : cutEnd)(cells[index] ?? "", width)
        const isLast = index === columns.length - 1 && column.align !== "right"
        return painted(column, isLast ? text : pad(text, width, column.align))
      })
      .join(gap)
      .trimEnd()
  return [
    line(
      columns.map((column) => column.title),
      (_, text) => options.paint.dim(text)
    ),
    ...rows.map((row, index) => {
      const record = records[index]
      return line(row, (column, text) =>
        record !== undefined && column.paint ? column.paint(record)(text) : text
      )
    })
  ]
}

/** Takes what is too wide from the columns that may shrink, widest first. */
const shrink = <A>(
  columns: ReadonlyArray<Column<A>>,
  natural: ReadonlyArray<number>,
  width: number | undefined
): ReadonlyArray<number> => {
  const widths = [...natural]
  if (width === undefined) return widths
  let excess = widths.reduce((sum, column) => sum + column, 0) + gap.length * (columns.length - 1) - width
  while (excess > 0) {
    const widest = columns.reduce<number | undefined>((best, column, index) => {
      const isCandidate = column.shrinks !== undefined && (widths[index] ?? 0) > leastWidth
      return isCandidate && (best === undefined || (widths[index] ?? 0) > (widths[best] ?? 0)) ? index : best
    }, undefined)
    if (widest === undefined) break
    widths[widest] = (widths[widest] ?? 0) - 1
    excess -= 1
  }
  return widths
}

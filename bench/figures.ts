/**
 * Figures: what was measured, beside what it is compared with.
 *
 * A figure alone says more about the machine than about the program; so one that
 * has a floor or a peer, measured in the same run, is shown as a ratio to it.
 */

export interface Figure {
  /** What was measured: `graph writes`, `event to running, p50`. */
  readonly name: string
  /** Under which load: `1 client`, `100 events/s, 1,000 agents`. */
  readonly load: string
  readonly value: number
  readonly unit: "ms" | "µs" | "/s" | "KiB" | ""
  /** What it stands beside, from the same run. */
  readonly beside?: { readonly name: string; readonly value: number } | undefined
}

export type Report = (figure: Figure) => void

/** The value below which so much of the sample lies; 0.5 is the median. */
export const quantile = (sample: ReadonlyArray<number>, share: number): number => {
  const sorted = sample.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const jsonLine = (figure: Figure): string =>
  JSON.stringify({ ...figure, ...(figure.beside ? { ratio: ratioOf(figure) } : {}) })

const ratioOf = ({ value, beside }: Figure): number => (beside ? value / beside.value : Number.NaN)

/** All figures as a table, each beside what it is compared with. */
export const tableOf = (figures: ReadonlyArray<Figure>): string =>
  markdownTable([
    ["figure", "load", "value", "beside", "ratio"],
    ...figures.map((figure) => [
      figure.name,
      figure.load,
      `${shown(figure.value)} ${figure.unit}`.trim(),
      figure.beside ? `${shown(figure.beside.value)} ${figure.unit} ${figure.beside.name}` : "",
      figure.beside ? `${shown(ratioOf(figure))}×` : ""
    ])
  ])

/** Rows, of which the first is the head, as a Markdown table with columns of even width. */
export const markdownTable = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: ReadonlyArray<string>) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`
  const [head = [], ...body] = rows
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...body.map(line)].join("\n")
}

/** A number in three digits. */
export const shown = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString()

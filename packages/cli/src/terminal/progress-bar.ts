/**
 * A progress bar as text: what is done, of how much, and how far that is.
 *
 * It fits any width: the bar shrinks first, then the words. `drawBar` decides
 * nothing about when to draw; without a terminal `milestone` says which steps
 * are worth a line.
 */
import type { Paint } from "./paint.ts"
import { displayWidth, cutEnd } from "./text.ts"

export interface Progress {
  readonly label: string
  readonly done: number
  readonly total: number
  /** What is done of how much, where the bare numbers would not do. */
  readonly count?: string | undefined
  /** What follows the percentage: how fast it goes and how long it will take. */
  readonly note?: string | undefined
}

const longestBar = 40
const shortestBar = 6

/** Renders the bar in exactly one line of at most so many columns. */
export const drawBar = (progress: Progress, columns: number, paint: Paint): string => {
  const share = progress.total <= 0 ? 1 : Math.min(1, Math.max(0, progress.done / progress.total))
  const total = String(progress.total)
  // Padded, so that nothing to the right moves while the number grows.
  const count = progress.count ?? `${String(progress.done).padStart(total.length)}/${total}`
  const note = progress.note === undefined ? "" : `  ${progress.note}`
  const percent = `${String(Math.floor(share * 100)).padStart(3)} %`
  const room = columns - displayWidth(`${progress.label}    ${count}  ${percent}${note}`)
  if (room < shortestBar) return cutEnd(`${progress.label}  ${count}  ${percent}${note}`, columns)
  const width = Math.min(longestBar, room)
  const filled = Math.floor(share * width)
  return `${progress.label}  ${paint.good("━".repeat(filled))}${paint.dim("─".repeat(width - filled))}  ${count}  ${paint.bold(percent)}${paint.dim(note)}`
}

/** The quarter that has been reached since `before`, or undefined when no line is due. */
export const milestone = (before: number, progress: Progress): number | undefined => {
  if (progress.total <= 0) return undefined
  const quarter = (done: number) => Math.floor((Math.min(done, progress.total) / progress.total) * 4) * 25
  const reached = quarter(progress.done)
  return reached > quarter(before) ? reached : undefined
}

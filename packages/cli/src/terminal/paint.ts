/**
 * The few colours of the command line, or none.
 *
 * Colour never carries a meaning that the words do not: without it nothing is
 * lost. Whether there is any is decided once, by the screen.
 */
export interface Paint {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly waiting: (text: string) => string
  readonly link: (text: string) => string
}

const code = (start: number, end: number) => (text: string) =>
  text === "" ? "" : `\u001B[${start}m${text}\u001B[${end}m`

export const coloured: Paint = {
  bold: code(1, 22),
  dim: code(2, 22),
  good: code(32, 39),
  bad: code(31, 39),
  waiting: code(33, 39),
  link: code(36, 39)
}

const same = (text: string): string => text

export const plain: Paint = { bold: same, dim: same, good: same, bad: same, waiting: same, link: same }

/** The colour of a run's, a task's or an explanation's state. */
export const paintState = (paint: Paint, state: string): ((text: string) => string) => {
  switch (state) {
    case "completed":
    case "woke":
    case "created":
      return paint.good
    case "failed":
    case "rejected":
    case "refused":
    case "deleted":
      return paint.bad
    case "pending":
    case "paused":
    case "queued":
    case "running":
    case "waiting":
    case "updated":
      return paint.waiting
    default:
      return paint.dim
  }
}

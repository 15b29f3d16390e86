/**
 * A comparison: subjects that do the same in turns, what was measured of each, and the bounds between them.
 *
 * A bound is judged by the ratio of two measurements of one round, and by the
 * median of all rounds: whatever else the machine does, it does to both.
 */
import { quantile, shown } from "../figures.ts"

export type Unit = "ms" | "/s" | "×" | "MB"

/** What one subject measured in one round, by the figure's name. */
export type Measured = Readonly<Record<string, number>>

export interface Subject {
  readonly name: string
  readonly measure: () => Promise<Measured>
}

/** One figure of one subject. */
export interface Place {
  readonly subject: string
  readonly figure: string
}

export interface Bound {
  readonly of: Place
  /** What it is divided by; absent where the figure itself is held against the bound. */
  readonly against?: Place
  /** Without either of the two a ratio is told and not judged. */
  readonly most?: number
  readonly least?: number
  /** Where it is to come in the end, which is no promise yet. */
  readonly isAim?: boolean
}

/** The subjects of a comparison, once everything that they need is there. */
export interface Prepared {
  readonly subjects: ReadonlyArray<Subject>
  readonly bounds: ReadonlyArray<Bound>
  readonly close: () => Promise<void>
}

/** The figures of a comparison, each with its unit. */
export type Units = Readonly<Record<string, Unit>>

/** One figure of one subject over all rounds. */
export interface Outcome extends Place {
  readonly unit: Unit
  readonly rounds: ReadonlyArray<number>
  readonly median: number
}

export interface Verdict {
  readonly bound: string
  readonly rounds: ReadonlyArray<number>
  readonly ratio: number
  /** Absent where nothing was promised and the ratio is only told. */
  readonly holds?: boolean
}

const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

/** Measures all subjects in turns; who begins moves by one each round, and the first round only warms up. */
export const takeTurns = async (
  subjects: ReadonlyArray<Subject>,
  rounds: number,
  tell: (line: string) => void
): Promise<ReadonlyArray<ReadonlyMap<string, Measured>>> => {
  const taken: Array<ReadonlyMap<string, Measured>> = []
  for (let round = 0; round <= rounds; round++) {
    const measured = new Map<string, Measured>()
    for (let turn = 0; turn < subjects.length; turn++) {
      const subject = subjects[(turn + round) % subjects.length]
      if (subject === undefined) continue
      measured.set(subject.name, await subject.measure())
      tell(
        `${round === 0 ? "warming up" : `round ${round}`}: ${subject.name} ${JSON.stringify(measured.get(subject.name))}`
      )
    }
    if (round > 0) taken.push(measured)
  }
  return taken
}

const valueAt = (round: ReadonlyMap<string, Measured>, { figure, subject }: Place): number =>
  round.get(subject)?.[figure] ?? Number.NaN

/** All figures of all subjects, in the order in which the first round has them. */
export const outcomesOf = (
  taken: ReadonlyArray<ReadonlyMap<string, Measured>>,
  subjects: ReadonlyArray<Subject>,
  units: Units
): ReadonlyArray<Outcome> =>
  Object.entries(units).flatMap(([figure, unit]) =>
    subjects.flatMap(({ name: subject }) => {
      const rounds = taken.map((round) => valueAt(round, { subject, figure }))
      return rounds.every(Number.isNaN) ? [] : [{ subject, figure, unit, rounds, median: median(rounds) }]
    })
  )

/** Judges a bound by the median of the rounds' ratios. */
export const judge = (taken: ReadonlyArray<ReadonlyMap<string, Measured>>, bound: Bound): Verdict => {
  const rounds = taken.map((round) =>
    bound.against === undefined
      ? valueAt(round, bound.of)
      : valueAt(round, bound.of) / valueAt(round, bound.against)
  )
  const ratio = median(rounds)
  const told = { bound: sentenceOf(bound), rounds, ratio }
  if (bound.most === undefined && bound.least === undefined) return told
  return { ...told, holds: ratio <= (bound.most ?? Number.POSITIVE_INFINITY) && ratio >= (bound.least ?? 0) }
}

/** A bound in words: `Tropism: a kept step ≤ 0.2× of LangGraph`. */
export const sentenceOf = ({ against, isAim, least, most, of }: Bound): string => {
  const limit = most !== undefined ? ` ≤ ${shown(most)}×` : least !== undefined ? ` ≥ ${shown(least)}×` : ""
  const said = `${isAim === true ? "aim, " : ""}${of.subject}: ${of.figure}${limit}`
  if (against === undefined) return said.replace(/×$/, "")
  const other = [
    ...(against.subject === of.subject ? [] : [against.subject]),
    ...(against.figure === of.figure ? [] : [against.figure])
  ]
  return `${said} of ${other.join(": ")}`
}

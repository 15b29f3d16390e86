/**
 * How comparisons are told: a line of JSON for programs, a table for people.
 */
import { markdownTable, shown } from "../figures.ts"
import type { Outcome, Verdict } from "./comparison.ts"

export const outcomeLine = ({ figure, median, rounds, subject, unit }: Outcome): string =>
  JSON.stringify({ figure, subject, unit, median, rounds })

export const verdictLine = (verdict: Verdict): string => JSON.stringify(verdict)

const withUnit = (value: number, unit: string): string => `${shown(value)}${unit === "×" ? "" : " "}${unit}`

/** Lowest and highest of some rounds. */
const range = (rounds: ReadonlyArray<number>): string =>
  `${shown(Math.min(...rounds))} to ${shown(Math.max(...rounds))}`

export const outcomeTable = (outcomes: ReadonlyArray<Outcome>): string =>
  markdownTable([
    ["figure", "of", "median", "rounds"],
    ...outcomes.map(({ figure, median, rounds, subject, unit }) => [
      figure,
      subject,
      withUnit(median, unit),
      range(rounds)
    ])
  ])

export const verdictTable = (verdicts: ReadonlyArray<Verdict>): string =>
  markdownTable([
    ["bound", "measured", "rounds", "verdict"],
    ...verdicts.map(({ bound, holds, ratio, rounds }) => [
      bound,
      shown(ratio),
      range(rounds),
      holds === undefined ? "" : holds ? "holds" : "does not hold"
    ])
  ])

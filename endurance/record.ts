/**
 * The last result, as a page: `docs/testing.md` has that of each trial between two marks.
 */
import { markdownTable } from "../bench/figures.ts"
import { count, type Finding, type Size } from "./trial.ts"

/** One trial that was run. */
export interface Outcome {
  readonly name: string
  readonly minutes: number
  readonly findings: ReadonlyArray<Finding>
}

/** What each trial does, as one reads it above its table. */
export const titles = (size: Size): Readonly<Record<string, string>> => ({
  events: `${count(size.events)} events through 10 agents`,
  subscribers: `${count(size.subscribers)} subscribers for ${minutesOf(size.subscribedMs)}, ${size.toldPerSecond} events/s`,
  writes: `${minutesOf(size.writtenMs)} of ${size.writtenPerSecond} writes/s`
})

const minutesOf = (ms: number): string => (ms < 60_000 ? `${ms / 1_000} seconds` : `${ms / 60_000} minutes`)

export const verdictOf = ({ bound }: Finding): string =>
  bound === undefined ? "" : bound.holds ? "**holds**" : "does not hold"

/** A trial's table with its title. */
export const sectionOf = ({ findings, minutes, name }: Outcome, size: Size): string =>
  [
    `### ${titles(size)[name] ?? name}`,
    "",
    markdownTable([
      ["", "seen", "bound", "verdict"],
      ...findings.map((finding) => [
        finding.what,
        finding.seen,
        finding.bound?.text ?? "",
        verdictOf(finding)
      ])
    ]),
    "",
    `It took ${minutes.toFixed(1)} minutes.`
  ].join("\n")

/** The page with another last result of one trial; those of the others stay. */
export const recordedIn = (page: string, name: string, result: string): string => {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error(`The page has no "${begin}" … "${end}" to write between`)
  return `${page.slice(0, from + begin.length)}\n\n${result}\n\n${page.slice(to)}`
}

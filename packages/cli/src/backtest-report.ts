/**
 * The report of a backtest as a person reads it: how far it agrees with what people decided.
 */
import type { BacktestReport, Rate, ReportedBacktest } from "@tropism/domain/backtest"
import { Effect } from "effect"
import { type Fact, printFacts } from "./print-records.ts"
import { Screen } from "./terminal/screen.ts"
import { type Column, renderTable } from "./terminal/table.ts"
import { printable } from "./terminal/text.ts"

/** Prints a backtest with its report. */
export const printBacktest = Effect.fnUntraced(function* (name: string, backtest: ReportedBacktest) {
  const screen = yield* Screen
  yield* printFacts(factsOf(name, backtest))
  const { byOperation } = backtest.report
  if (byOperation.length === 0) return
  yield* screen.print(
    "",
    ...renderTable(byOperation, columns, { paint: screen.paint, width: yield* screen.width })
  )
})

type ByOperation = BacktestReport["byOperation"][number]

export const rateText = ({ agreed, judged, rate }: Rate): string =>
  rate === null ? "no reviewed suggestions yet" : `${Math.round(rate * 100)} % (${agreed} of ${judged})`

const columns: ReadonlyArray<Column<ByOperation>> = [
  { title: "TYPE", cell: ({ objectType }) => objectType },
  { title: "OPERATION", cell: ({ operation }) => operation },
  { title: "AGREES", cell: rateText }
]

const factsOf = (name: string, { agentVersion, days, detail, events, report }: ReportedBacktest) => {
  const { edited, properties, refusals, runs, usage } = report
  const facts: ReadonlyArray<Fact> = [
    ["Agent", `${printable(name)} version ${agentVersion}`],
    [
      "Events",
      `${events.done} of ${events.chosen} run; ${events.matched} of ${events.looked} ${days === null ? "chosen" : `in ${days} ${days === 1 ? "day" : "days"}`} match its trigger`
    ],
    ["Stopped", detail ?? ""],
    ["Agrees", rateText(report.agreement)],
    [
      "Edited",
      edited.asEdited + edited.asSuggested + edited.neither === 0
        ? ""
        : `${edited.asEdited} as edited, ${edited.asSuggested} as suggested, ${edited.neither} neither`
    ],
    [
      "Properties",
      properties.accepted === 0
        ? ""
        : `${properties.same} the same; precision ${percent(properties.precision)}, recall ${percent(properties.recall)}`
    ],
    ["New", `${report.newSuggestions} not in the original run`],
    ["Undecided", report.undecided === 0 ? "" : `${report.undecided} left out`],
    ["Refused", refusals.map(({ count, reason }) => `${count} ${reason}`).join(", ")],
    [
      "Not completed",
      [
        ...(runs.failed === 0 ? [] : [`${runs.failed} failed`]),
        ...(runs.cancelled === 0 ? [] : [`${runs.cancelled} cancelled`]),
        ...(runs.paused === 0 ? [] : [`${runs.paused} stopped by a limit`])
      ].join(", ")
    ],
    ["Tokens", String(usage.inputTokens + usage.outputTokens)],
    ["Cost", `$${report.costUsd}`]
  ]
  return facts
}

/** A part of a whole; nothing is known of none. */
export const percent = (part: number | null): string => (part === null ? "–" : `${Math.round(part * 100)} %`)

/**
 * Checks what agents did outside of the graph against what the foreign server truly did.
 */
import { type Checker, unless } from "./remains.ts"
import type { CallRow } from "./rows.ts"
import { deedOf, repeatables } from "./shop.ts"

/** Whether a foreign server does what the call asks for. */
export const isForeign = ({ tool }: Pick<CallRow, "tool">): boolean => tool.includes("__")

/** What is on record as done was done, and nothing was done but what is on record as done or as unknown, each once; a backtest does nothing. */
const foreignDeedsCounted: Checker = ({ calls, deeds, runs }) => {
  const tried = new Set(runs.flatMap(({ backtestId, id }) => (backtestId === null ? [] : [id])))
  const asked = Map.groupBy(
    calls.filter((call) => isForeign(call) && !tried.has(call.runId)),
    (call) => deedOf(call.tool, call.arguments)
  )
  const done = Map.groupBy(deeds, (deed) => deed)
  return [...new Set([...asked.keys(), ...done.keys()])].flatMap((deed) => {
    const times = done.get(deed)?.length ?? 0
    const statuses = (asked.get(deed) ?? []).map(({ status }) => status)
    const least = statuses.filter((status) => status === "completed").length
    const open = statuses.filter((status) => status === "unknown" || status === "started").length
    const isBounded = !repeatables.some((tool) => deed.startsWith(`${tool} `)) || statuses.length === 0
    return unless(
      times >= least && (times <= least + open || !isBounded),
      `${deed} was done ${times} times, and its calls are on record as [${statuses.join(", ")}]`
    )
  })
}

export const checkShop = { foreignDeedsCounted }

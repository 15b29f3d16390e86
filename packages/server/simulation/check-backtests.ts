/**
 * Checks backtests: each comes to its end, each of its events has one run, and nothing stems from what was only tried out.
 */
import { type Checker, unless } from "./remains.ts"

/** Nothing in the graph, before people, in an agent's ledger or of another run has a backtest's run as its cause. */
const backtestsApart: Checker = ({ denials, entries, events, runs, tasks }) => {
  const tried = new Set(runs.flatMap(({ backtestId, id }) => (backtestId === null ? [] : [id])))
  const isTried = (id: string | null) => tried.has(id ?? "")
  return [
    ...events.flatMap(({ id, rootEventId, runId }) =>
      unless(!isTried(runId) && !isTried(rootEventId), `event ${id} stems from a backtest`)
    ),
    ...tasks.flatMap(({ ordinal, runId }) =>
      unless(!isTried(runId), `task ${ordinal} stems from a backtest`)
    ),
    ...entries.flatMap(({ id, runId }) => unless(!isTried(runId), `entry ${id} is handled by a backtest`)),
    ...denials.flatMap(({ runId }) =>
      unless(!isTried(runId), `a denial stems from run ${runId} of a backtest`)
    ),
    ...runs.flatMap(({ backtestId, id, parentRunId, rootEventId }) =>
      unless(
        !isTried(parentRunId) && (backtestId !== null || !isTried(rootEventId)),
        `run ${id} was begun by a backtest`
      )
    )
  ]
}

/** A backtest is over, of a completed one every event has its run, and each run is of one event; what it would suggest is its own. */
const backtestsWhole: Checker = ({ backtestEvents, backtests, runs, wouldBes }) => {
  const runById = new Map(runs.map((run) => [run.id, run]))
  const eventsOf = Map.groupBy(backtestEvents, ({ runId }) => runId)
  const whole = new Set(
    backtests.flatMap((one) => (one.status === "completed" && !one.detail ? [one.id] : []))
  )
  return [
    ...backtests.flatMap(({ id, status }) =>
      unless(status !== "queued" && status !== "running", `backtest ${id} is ${status}`)
    ),
    ...backtestEvents.flatMap(({ backtestId, number, runId }) =>
      unless(
        runId === null ? !whole.has(backtestId) : runById.get(runId)?.backtestId === backtestId,
        `event ${number} of backtest ${backtestId} has no run of it`
      )
    ),
    ...runs.flatMap(({ backtestId, id }) =>
      unless(
        backtestId === null || eventsOf.get(id)?.length === 1,
        `run ${id} of a backtest is of ${eventsOf.get(id)?.length ?? 0} events`
      )
    ),
    ...wouldBes.flatMap(({ backtestId, runId, toolCallId }) =>
      unless(
        runById.get(runId)?.backtestId === backtestId,
        `call ${toolCallId} suggests for a backtest that it is not of`
      )
    )
  ]
}

export const checkBacktests = { backtestsApart, backtestsWhole }

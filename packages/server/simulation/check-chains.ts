/**
 * Checks chains: every event and run knows its own, and each ends at its caps.
 */
import { askedFor, type Checker, isAskedFor, type Remains, unless } from "./remains.ts"

/** How many runs the events of each chain have led to, and these have spawned; a run for events of several chains counts in each. */
const countRuns = ({ events, runs }: Remains): ReadonlyMap<string, number> => {
  const rootOf = new Map(events.map((event) => [event.id, event.rootEventId]))
  const handedOn = runs.flatMap((run) => (run.parentRunId === null ? [] : [run.rootEventId]))
  const woken = runs
    .filter(
      ({ backtestId, trigger }) => backtestId === null && ["reaction", "mcpEvent"].includes(trigger.type)
    )
    .flatMap((run) =>
      isAskedFor(run)
        ? [run.id]
        : [
            ...new Set((run.trigger.events ?? []).map(({ id }) => rootOf.get(id) ?? "unknown")),
            // What a foreign server told is a root of its own.
            ...(run.trigger.mcpEvents ?? []).map(({ id }) => id)
          ]
    )
  const roots = [...woken, ...handedOn]
  return new Map([...Map.groupBy(roots, (root) => root)].map(([root, found]) => [root, found.length]))
}

/** A chain's count is the number of runs that its events queued. */
const chainsCounted: Checker = (remains) => {
  const counted = new Map(
    remains.budgets.flatMap(({ runs, scope, scopeId }) => (scope === "chain" ? [[scopeId, runs]] : []))
  )
  const found = countRuns(remains)
  return [...new Set([...counted.keys(), ...found.keys()])].flatMap((root) => {
    const there = found.get(root) ?? 0
    return unless(
      (counted.get(root) ?? 0) === there,
      `the chain of ${root} counts ${counted.get(root)} runs and has ${there}`
    )
  })
}

/** Runs that a person asked for by naming an object, and what these spawned: what waited or is tried again belongs to the chain of its event, however deep that lies. */
const askedRuns = (remains: Remains): ReadonlySet<string> => {
  const isAsked = askedFor(remains)
  const asked = new Set(remains.entries.flatMap((entry) => (isAsked(entry) ? (entry.runId ?? []) : [])))
  return new Set(
    remains.runs.flatMap(({ ancestors, id }) =>
      [id, ...ancestors].some((one) => asked.has(one)) ? [id] : []
    )
  )
}

/** No chain goes deeper or leads to more runs than its project allows, whoever keeps it going, unless a person goes on with it. */
const chainsEnd: Checker = (remains) => {
  const { maxDepth, maxRuns } = remains.chainLimits
  const asked = askedRuns(remains)
  return [
    ...remains.runs.flatMap((run) =>
      unless(
        run.depth < maxDepth || asked.has(run.id),
        `run ${run.id} lies ${run.depth} deep in its chain, at most ${maxDepth}`
      )
    ),
    ...[...countRuns(remains)].flatMap(([root, count]) =>
      unless(count <= maxRuns, `the chain of ${root} has led to ${count} runs, at most ${maxRuns}`)
    )
  ]
}

/** What a run causes belongs to its chain, one step deeper. */
const chainsLead: Checker = ({ runs, events }) => {
  const runById = new Map(runs.map((run) => [run.id, run]))
  return events.flatMap((event) => {
    const run = runById.get(event.runId ?? "")
    if (event.runId === null)
      return unless(
        event.rootEventId === event.id && event.depth === 0,
        `event ${event.id} begins no chain of its own`
      )
    return unless(
      run !== undefined && event.rootEventId === run.rootEventId && event.depth === run.depth + 1,
      `event ${event.id} does not belong to the chain of its run`
    )
  })
}

export const checkChains = { chainsCounted, chainsEnd, chainsLead }

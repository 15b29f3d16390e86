/**
 * Checks chains: every event and run knows its own, and each ends at its caps.
 */
import { askedFor, type Checker, isAskedFor, keyOf, type Remains, unless } from "./remains.ts"
import type { EntryRow, RunRow } from "./rows.ts"

/** The chain in which an entry is worked on: that of the newest try that a person asked for, else that of its event. */
const chainOf = ({ entries, events, runs }: Remains): ((entry: EntryRow) => string) => {
  const asked = new Set(runs.filter(isAskedFor).map(({ id }) => id))
  const rootOf = new Map(events.map((event) => [event.id, event.rootEventId]))
  const subjectOf = (entry: EntryRow): string =>
    keyOf(entry.agentId, entry.graphObjectId, entry.objectVersion, entry.eventType)
  const tries = Map.groupBy(
    entries.toSorted((a, b) => a.attempt - b.attempt),
    subjectOf
  )
  return (entry) => {
    const before = (tries.get(subjectOf(entry)) ?? []).filter(({ attempt }) => attempt <= entry.attempt)
    // What a foreign server told is a root of its own.
    return (
      before.findLast(({ runId }) => asked.has(runId ?? ""))?.runId ??
      rootOf.get(entry.eventId) ??
      entry.eventId
    )
  }
}

/** The chains of what each run that was woken is about. */
const chainsOfWoken = (remains: Remains): ReadonlyArray<{ run: RunRow; roots: ReadonlyArray<string> }> => {
  const find = chainOf(remains)
  const entriesOf = Map.groupBy(remains.entries, ({ runId }) => runId)
  return remains.runs
    .filter(
      ({ backtestId, trigger }) => backtestId === null && ["reaction", "mcpEvent"].includes(trigger.type)
    )
    .map((run) => ({
      run,
      roots: isAskedFor(run) ? [run.id] : [...new Set((entriesOf.get(run.id) ?? []).map(find))]
    }))
}

/** How many runs the events of each chain have led to, and these have spawned; a run for events of several chains counts in each. */
const countRuns = (remains: Remains): ReadonlyMap<string, number> => {
  const handedOn = remains.runs.flatMap((run) => (run.parentRunId === null ? [] : [run.rootEventId]))
  const roots = [...chainsOfWoken(remains).flatMap((woken) => woken.roots), ...handedOn]
  return new Map([...Map.groupBy(roots, (root) => root)].map(([root, found]) => [root, found.length]))
}

/** A run belongs to a chain of what it is about, also where it tries again what a person asked for. */
const chainsKept: Checker = (remains) =>
  chainsOfWoken(remains).flatMap(({ roots, run }) =>
    unless(
      roots.includes(run.rootEventId),
      `run ${run.id} stands in the chain of ${run.rootEventId}, and is about what is of ${roots.join(", ")}`
    )
  )

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

/** Runs that a person asked for by naming an object and that had to wait, and what these spawned: they belong to the chain of their event, however deep that lies. */
const askedRuns = (remains: Remains): ReadonlySet<string> => {
  const isAsked = askedFor(remains)
  const find = chainOf(remains)
  const rootOf = new Map(remains.events.map((event) => [event.id, event.rootEventId]))
  const asked = new Set(
    remains.entries.flatMap((entry) =>
      isAsked(entry) && find(entry) === rootOf.get(entry.eventId) ? (entry.runId ?? []) : []
    )
  )
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

export const checkChains = { chainsCounted, chainsEnd, chainsKept, chainsLead }

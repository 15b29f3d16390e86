/**
 * Checks the work: nothing handled twice, a run for each entry, and every run at rest.
 */
import type { EntryRow, RunRow } from "./rows.ts"
import { type Checker, countsUp, keyOf, unless } from "./remains.ts"

/** An entry is tried again only when the try before it did not end well. */
const mayBeTriedAgain = ["failed", "abandoned", "skipped"]

/** Nothing is handled twice: one entry for each agent, object, version, kind and try, and one run for each entry. */
const handledOnce: Checker = ({ entries, runs }) => {
  const runById = new Map(runs.map((run) => [run.id, run]))
  const same = Map.groupBy(entries, (entry) => keyOf(...keysOf(entry)))
  const entriesOfRun = Map.groupBy(entries, (entry) => entry.runId)
  return [
    ...[...same].flatMap(([key, found]) => {
      const tries = found.toSorted((a, b) => a.attempt - b.attempt)
      return unless(
        countsUp(tries.map((entry) => entry.attempt)) &&
          tries.slice(0, -1).every((entry) => mayBeTriedAgain.includes(entry.status)),
        `there are several entries for ${key}: ${tries.map(({ attempt, status }) => `${attempt} ${status}`).join(", ")}`
      )
    }),
    ...entries.flatMap((entry) => {
      if (entry.status === "skipped")
        return unless(
          entry.runId === null && entry.reason !== null,
          `the skipped entry ${entry.id} has a run or no reason`
        )
      const run = runById.get(entry.runId ?? "")
      return unless(
        run?.agentId === entry.agentId && handledBy(run).some(({ id }) => id === entry.eventId),
        `entry ${entry.id} has not the run of its event`
      )
    }),
    ...runs.flatMap((run) => {
      const found = entriesOfRun.get(run.id)?.length ?? 0
      // What is only tried out is handled by nobody.
      const handled = isReaction(run) && run.backtestId === null ? handledBy(run).length : 0
      return unless(found === handled, `run ${run.id} handles ${handled} events and has ${found} entries`)
    })
  ]
}

/** A run that the graph or a foreign server woke. */
const isReaction = ({ trigger }: RunRow): boolean =>
  trigger.type === "reaction" || trigger.type === "mcpEvent"

const isCancelledByPerson = ({ status, cancelledBy }: RunRow): boolean =>
  status === "cancelled" && cancelledBy !== null

/** What a run is about. */
const handledBy = ({ trigger }: RunRow): ReadonlyArray<{ readonly id: string }> => [
  ...(trigger.events ?? []),
  ...(trigger.mcpEvents ?? [])
]

/** What did not end well is tried again, or kept as a dead letter; a skipped attempt tries nothing, and what a person cancelled is none. */
const deadLettersKept: Checker = ({ entries, runs }) => {
  const cancelled = new Set(runs.filter(isCancelledByPerson).map(({ id }) => id))
  const tries = Map.groupBy(
    entries.filter(({ status }) => status !== "skipped"),
    (entry) => keyOf(...keysOf(entry))
  )
  return entries.flatMap((entry) => {
    const same = tries.get(keyOf(...keysOf(entry))) ?? []
    const isTriedAgain = same.some(({ attempt }) => attempt > entry.attempt)
    const isDead = entry.deadLetteredAt !== null
    if (cancelled.has(entry.runId ?? "") && entry.status === "failed")
      return unless(!isDead, `entry ${entry.id} is a dead letter although a person cancelled its run`)
    return ["failed", "abandoned"].includes(entry.status)
      ? unless(
          isDead !== isTriedAgain,
          `the ${entry.status} entry ${entry.id} is ${isDead ? "a dead letter and tried again" : "neither tried again nor a dead letter"}`
        )
      : unless(!isDead, `entry ${entry.id} is ${entry.status} and a dead letter`)
  })
}

/** What an entry is about. */
const keysOf = (entry: EntryRow): ReadonlyArray<string | number> => [
  entry.agentId,
  entry.graphObjectId,
  entry.objectVersion,
  entry.eventType
]

/** The states in which an entry may be when its run has come to rest. */
const restOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  completed: ["completed"],
  skipped: [],
  paused: ["completed"],
  failed: ["failed", "abandoned"],
  cancelled: ["failed", "completed"] // completed: it was paused, and a paused run holds nothing
}

/** Every run is over or paused, with a reason where it failed, and its entry says the same. */
const runsAtRest: Checker = ({ runs, entries }) => {
  const entriesOfRun = Map.groupBy(entries, (entry) => entry.runId)
  return runs.flatMap((run) => {
    const allowed = restOf[run.status]
    if (allowed === undefined) return [`run ${run.id} is ${run.status}`]
    return [
      ...unless(
        run.status !== "failed" || (run.errorMessage ?? "") !== "",
        `run ${run.id} failed without a reason`
      ),
      ...(entriesOfRun.get(run.id) ?? []).flatMap((entry) =>
        unless(
          allowed.includes(entry.status) || hadPaused(run, entry),
          `run ${run.id} is ${run.status} and its entry ${entry.status}`
        )
      )
    ]
  })
}

/** A limit ended the entry when the run paused, and says so; a person had the run go on, and it failed. */
const hadPaused = (run: RunRow, entry: EntryRow): boolean =>
  run.status === "failed" && entry.status === "completed" && entry.reason !== null

/** A schedule fires once for each instant. */
const firedOnce: Checker = ({ runs }) => {
  const fired = runs.filter((run) => run.dueAt !== null)
  const instants = new Set(fired.map((run) => keyOf(run.agentId, run.dueAt?.getTime() ?? 0)))
  return unless(instants.size === fired.length, "a schedule fired twice for one instant")
}

/** What another system delivered begins one run, however often it is delivered, and everybody is told the same. */
const deliveredOnce: Checker = ({ acknowledged, runs }) => {
  const begun = Map.groupBy(
    runs.filter((run) => run.trigger.delivery !== undefined),
    (run) => run.trigger.delivery?.id ?? ""
  )
  return [
    ...[...begun].flatMap(([id, found]) =>
      unless(found.length === 1, `"${id}" has begun ${found.length} runs`)
    ),
    ...acknowledged.delivered.flatMap(({ id, runId }) =>
      unless(begun.get(id)?.[0]?.id === runId, `"${id}" was accepted as run ${runId}, which it did not begin`)
    )
  ]
}

/** An agent that skips is told that an object is gone, however busy it was; what was let go while it waited had its time. */
const deletionsKept: Checker = ({ entries }) =>
  entries.flatMap((entry) =>
    unless(
      entry.eventType !== "deleted" || entry.status !== "skipped" || entry.completedAt !== null,
      `the deletion of ${entry.graphObjectId} was skipped because agent ${entry.agentId} was at work`
    )
  )

export const checkReactions = {
  deletionsKept,
  handledOnce,
  runsAtRest,
  firedOnce,
  deliveredOnce,
  deadLettersKept
}

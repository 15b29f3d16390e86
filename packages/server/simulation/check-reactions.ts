/**
 * Checks what events led to: each matching event one entry and one run, no agent
 * woken by itself, every run at rest, every chain counted.
 */
import { defineChainLimits } from "@tropism/domain/chain"
import type { AgentId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { findRefusal, isOfNoConcern } from "@tropism/domain/refusal"
import type { EntryRow, EventRow } from "./rows.ts"
import { type Checker, unless } from "./remains.ts"

const keyOf = (...parts: ReadonlyArray<string | number>): string => parts.join(" ")

/** Every event that an agent listens to has its entry, or a reason why not. */
const everyEventAnswered: Checker = ({ agents, events, entries }) => {
  const entriesOf = Map.groupBy(entries, (entry) => keyOf(entry.agentId, entry.eventId))
  return agents.flatMap((agent) => {
    const config = agent.reactionConfig
    if (config === null) return []
    return events.flatMap((event) => {
      const found = entriesOf.get(keyOf(agent.id, event.id)) ?? []
      return answered(agent.id, event, found, judge(agent.id as AgentId, config, event))
    })
  })
}

type Judgement = { readonly wakes: boolean; readonly reason: string | undefined }

const judge = (agentId: AgentId, config: ReactionConfig, event: EventRow): Judgement => {
  const refusal = findRefusal(agentId, config, event, defineChainLimits({}))
  return {
    wakes: refusal === undefined,
    reason: refusal === undefined || isOfNoConcern(refusal.rule) ? undefined : refusal.reason
  }
}

const answered = (
  agentId: string,
  event: EventRow,
  entries: ReadonlyArray<EntryRow>,
  { wakes, reason }: Judgement
): ReadonlyArray<string> => {
  const at = `event ${event.id} (${event.type} ${event.objectType}) and agent ${agentId}`
  const refusals = event.refusals.filter((refusal) => refusal.agentId === agentId)
  const reasons = refusals.map((refusal) => refusal.reason)
  if (!wakes)
    return [
      ...unless(entries.length === 0, `${at}: there is an entry though it must not wake`),
      ...unless(reasons.join() === (reason ?? ""), `${at}: the refusal is told as "${reasons.join()}"`)
    ]
  const isCapped = refusals.some(({ rule }) => rule === "chainRuns" || rule === "oscillation")
  return unless(
    entries.length === (isCapped ? 0 : 1) && reasons.length === (isCapped ? 1 : 0),
    `${at}: ${entries.length} entries and ${reasons.length} refusals`
  )
}

/** Nothing is handled twice: one entry for each agent, object, version and kind, and one run for each entry. */
const handledOnce: Checker = ({ entries, runs }) => {
  const runById = new Map(runs.map((run) => [run.id, run]))
  const same = Map.groupBy(entries, (entry) =>
    keyOf(entry.agentId, entry.graphObjectId, entry.objectVersion, entry.eventType)
  )
  const entriesOfRun = Map.groupBy(entries, (entry) => entry.runId)
  return [
    ...[...same]
      .filter(([, found]) => found.length > 1)
      .map(([key]) => `there are several entries for ${key}`),
    ...entries.flatMap((entry) => {
      if (entry.status === "skipped")
        return unless(
          entry.runId === null && entry.reason !== null,
          `the skipped entry ${entry.id} has a run or no reason`
        )
      const run = runById.get(entry.runId ?? "")
      return unless(
        run?.agentId === entry.agentId && run.trigger.events?.[0]?.id === entry.eventId,
        `entry ${entry.id} has not the run of its event`
      )
    }),
    ...runs.flatMap((run) => {
      const found = entriesOfRun.get(run.id)?.length ?? 0
      return unless(found === (run.trigger.type === "reaction" ? 1 : 0), `run ${run.id} has ${found} entries`)
    })
  ]
}

const notWokenByItself: Checker = ({ events, entries }) => {
  const eventById = new Map(events.map((event) => [event.id, event]))
  return entries.flatMap((entry) =>
    unless(
      eventById.get(entry.eventId)?.actorId !== entry.agentId,
      `entry ${entry.id}: the agent was woken by its own change`
    )
  )
}

/** The states in which an entry may be when its run has come to rest. */
const restOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  completed: ["completed"],
  paused: ["completed"],
  failed: ["failed", "abandoned"],
  cancelled: ["failed", "completed"] // completed: it was paused, and a paused run holds nothing
}

/** Every run is over or paused, with a reason where it failed, and its entry says the same. */
const runsAtRest: Checker = ({ runs, entries }) => {
  const entryOfRun = new Map(entries.map((entry) => [entry.runId, entry]))
  return runs.flatMap((run) => {
    const allowed = restOf[run.status]
    if (allowed === undefined) return [`run ${run.id} is ${run.status}`]
    const entry = entryOfRun.get(run.id)
    return [
      ...unless(
        run.status !== "failed" || (run.errorMessage ?? "") !== "",
        `run ${run.id} failed without a reason`
      ),
      ...unless(
        entry === undefined || allowed.includes(entry.status),
        `run ${run.id} is ${run.status} and its entry ${entry?.status}`
      )
    ]
  })
}

/** A chain's count is the number of runs that its events queued. */
const chainsCounted: Checker = ({ chains, runs }) => {
  const reactions = runs.filter((run) => run.trigger.type === "reaction")
  const counted = new Map(chains.map((chain) => [chain.scopeId, chain.runs]))
  const roots = new Set([...counted.keys(), ...reactions.map((run) => run.rootEventId)])
  return [...roots].flatMap((root) => {
    const there = reactions.filter((run) => run.rootEventId === root).length
    return unless(
      counted.get(root) === there,
      `the chain of ${root} counts ${counted.get(root)} runs and has ${there}`
    )
  })
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

/** A schedule fires once for each instant. */
const firedOnce: Checker = ({ runs }) => {
  const fired = runs.filter((run) => run.dueAt !== null)
  const instants = new Set(fired.map((run) => keyOf(run.agentId, run.dueAt?.getTime() ?? 0)))
  return unless(instants.size === fired.length, "a schedule fired twice for one instant")
}

export const checkReactions = {
  everyEventAnswered,
  handledOnce,
  notWokenByItself,
  runsAtRest,
  chainsCounted,
  chainsLead,
  firedOnce
}

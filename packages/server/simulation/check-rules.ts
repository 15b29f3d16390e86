/**
 * Checks that reactions kept their agents' rules about order, time and number.
 *
 * Only agents whose rule never changed are judged, and of their runs only the
 * first tries: a person who has something tried again does not wait.
 */
import type { ReactionConfig } from "@tropism/domain/reaction"
import { dueMs, isExclusive } from "@tropism/domain/waiting"
import { canonicalJson } from "@tropism/domain/json"
import type { AgentRow, EntryRow, RunRow } from "./rows.ts"
import { type Checker, isAskedFor, type Remains, unless } from "./remains.ts"

/** A run with the entries that it handled. */
interface Work {
  readonly run: RunRow
  readonly entries: ReadonlyArray<EntryRow>
}

interface Bound {
  readonly agentId: string
  readonly rule: ReactionConfig
  /** Those of its events that were let go while they waited. */
  readonly letGo: ReadonlyArray<EntryRow>
  /** Its runs in the order in which they began to be. */
  readonly work: ReadonlyArray<Work>
}

/** The rule that an agent always had; undefined when it had several, or none. */
const steadyRule = ({ definitions }: AgentRow): ReactionConfig | undefined => {
  const [first, ...others] = definitions.map(({ reactionConfig }) => reactionConfig)
  const isSteady = others.every((other) => canonicalJson(other) === canonicalJson(first))
  return isSteady ? (first ?? undefined) : undefined
}

const boundOf = ({ agents, entries, runs }: Remains): ReadonlyArray<Bound> => {
  const entriesOf = Map.groupBy(entries, (entry) => entry.runId)
  const work = runs.flatMap((run): ReadonlyArray<Work> => {
    const handled = entriesOf.get(run.id) ?? []
    return handled.length > 0 && !isAskedFor(run) && handled.every((entry) => entry.attempt === 1)
      ? [{ run, entries: handled }]
      : []
  })
  return agents.flatMap((agent) => {
    const rule = steadyRule(agent)
    return rule === undefined
      ? []
      : [
          {
            agentId: agent.id,
            rule,
            letGo: entries.filter(({ agentId, status }) => agentId === agent.id && status === "skipped"),
            work: work.filter(({ run }) => run.agentId === agent.id)
          }
        ]
  })
}

/** A checker of each agent's rule. */
const ofEach =
  (find: (bound: Bound, remains: Remains) => ReadonlyArray<string>): Checker =>
  (remains) =>
    boundOf(remains).flatMap((bound) => find(bound, remains))

/** A transaction's instant is that of its beginning, and it may have waited long: the later of both is nearer to when the work began. */
const beganAt = ({ createdAt, startedAt }: RunRow): number =>
  Math.max(createdAt.getTime(), startedAt?.getTime() ?? 0)

const timeOf = (date: Date | null): number => date?.getTime() ?? Number.POSITIVE_INFINITY

/** What an agent did on one object, in order. */
const onEachObject = ({
  work
}: Bound): ReadonlyArray<ReadonlyArray<Work & { readonly versions: ReadonlyArray<number> }>> => {
  const ids = new Set(work.flatMap(({ entries }) => entries.map((entry) => entry.graphObjectId)))
  return [...ids].map((id) =>
    work.flatMap(({ run, entries }) => {
      const versions = entries
        .filter((entry) => entry.graphObjectId === id)
        .map((entry) => entry.objectVersion)
      return versions.length === 0 ? [] : [{ run, entries, versions }]
    })
  )
}

/** Runs that a limit paused and somebody let go on: meanwhile they held nothing, so others may have begun. */
const resumedIn = ({ contextEvents }: Remains): ReadonlySet<string> =>
  new Set(
    contextEvents.flatMap(({ contextName, event }) => (event.type === "RunResumedEvent" ? [contextName] : []))
  )

/** An agent that works on an object alone never has two runs at work on it. */
const workedAlone = ofEach((bound, remains) => {
  const resumed = resumedIn(remains)
  if (!isExclusive(bound.rule)) return []
  return onEachObject(bound).flatMap((work) =>
    work.slice(1).flatMap(({ run }, index) => {
      const before = work[index]?.run
      return unless(
        run.startedAt === null ||
          before === undefined ||
          timeOf(before.completedAt) <= beganAt(run) ||
          before.status === "paused" ||
          resumed.has(before.contextName),
        `run ${run.id} was at work on an object beside run ${before?.id}`
      )
    })
  )
})

/** Where events wait for each other, each run handles newer versions than the one before. */
const workedInOrder = ofEach((bound) =>
  bound.rule.concurrencyStrategy === "latest" || bound.rule.concurrencyStrategy === "queue"
    ? onEachObject(bound).flatMap((work) =>
        work
          .slice(1)
          .flatMap(({ run, versions }, index) =>
            unless(
              Math.max(...(work[index]?.versions ?? [])) < Math.min(...versions),
              `run ${run.id} handles version ${Math.min(...versions)} after version ${Math.max(...(work[index]?.versions ?? []))}`
            )
          )
      )
    : []
)

/**
 * When a run was made.
 *
 * **Details** Rows are dated by the beginning of their transaction. Of a run that was made together with its entries only
 * its id tells what the clock said: within a transaction a night may have passed.
 */
const madeMs = ({ createdAt, id }: RunRow, cameMs: number): number =>
  createdAt.getTime() === cameMs
    ? Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)
    : createdAt.getTime()

/** When events may begin a run, as the rule says. */
const dueOf = (rule: ReactionConfig, entries: ReadonlyArray<EntryRow>): number => {
  const came = entries.map((entry) => entry.createdAt.getTime())
  return dueMs(rule, Math.min(...came), Math.max(...came))
}

/**
 * A run for events that wait for quiet, or for each other, does not begin before its time.
 *
 * **Details** What waited with them counts, too, though its chain had no place for it: it was let go in the transaction that
 * made the run, after it was decided that the time of all of them had come.
 */
const waitedLongEnough = ofEach(({ letGo, rule, work }) =>
  rule.debounceMs === 0 && rule.batchSize === 1
    ? []
    : work.flatMap(({ entries, run }) => {
        const last = Math.max(...entries.map((entry) => entry.createdAt.getTime()))
        const together = [
          ...entries,
          ...letGo.filter(
            ({ completedAt, graphObjectId }) =>
              timeOf(completedAt) === run.createdAt.getTime() &&
              (rule.batchSize > 1 || entries.some((entry) => entry.graphObjectId === graphObjectId))
          )
        ]
        const isFull = rule.batchSize > 1 && together.length >= rule.batchSize
        const due = Math.min(dueOf(rule, entries), dueOf(rule, together))
        return unless(
          isFull || madeMs(run, last) >= due,
          `run ${run.id} began ${madeMs(run, last) - last} ms after the last of its ${entries.length} events: ${canonicalJson(rule)}`
        )
      })
)

/** No run handles more events than a batch may have. */
const batchesBounded = ofEach(({ rule, work }) =>
  rule.batchSize === 1
    ? []
    : work.flatMap(({ entries, run }) =>
        unless(
          entries.length <= rule.batchSize,
          `run ${run.id} handles ${entries.length} events, at most ${rule.batchSize}`
        )
      )
)

/** In no window of time do more runs begin than the rate allows. */
const ratesKept = ofEach(({ agentId, rule: { rateLimit }, work }) => {
  if (rateLimit === null) return []
  // A run that was cancelled before it began has begun nothing.
  const begun = work
    .flatMap(({ run }) => (run.startedAt === null ? [] : [beganAt(run)]))
    .toSorted((a, b) => a - b)
  return begun.flatMap((at, index) => {
    const next = begun[index + rateLimit.maxRuns]
    return unless(
      next === undefined || next - at >= rateLimit.perSeconds * 1_000,
      `agent ${agentId} began more than ${rateLimit.maxRuns} runs within ${rateLimit.perSeconds} s`
    )
  })
})

/** Runs that waited for a person or for runs that they had spawned: meanwhile they were not at work, so others may have begun. */
const waitedIn = ({ calls }: Remains): ReadonlySet<string> =>
  new Set(calls.flatMap(({ runId, tool }) => (waitingTools.has(tool) ? [runId] : [])))

const waitingTools: ReadonlySet<string> = new Set(["ask_user", "spawn_agent"])

/** Never are more runs at work than may be at once. A switch lets runs rest, and others begin meanwhile. */
const concurrencyKept = ofEach(({ agentId, rule: { maxConcurrency }, work }, remains) => {
  if (maxConcurrency === null || remains.acknowledged.halted.length > 0) return []
  const resumed = resumedIn(remains)
  const waited = waitedIn(remains)
  const ended = work.filter(
    ({ run }) => run.completedAt !== null && !resumed.has(run.contextName) && !waited.has(run.id)
  )
  return ended.flatMap(({ run }) => {
    const at = beganAt(run)
    const others = ended.filter((other) => beganAt(other.run) <= at && timeOf(other.run.completedAt) > at)
    return unless(
      others.length <= maxConcurrency,
      `agent ${agentId} had ${others.length} runs at once, at most ${maxConcurrency}`
    )
  })
})

export const checkRules = {
  workedAlone,
  workedInOrder,
  waitedLongEnough,
  batchesBounded,
  ratesKept,
  concurrencyKept
}

/**
 * Turns waiting entries into queued runs, as far as their agents' rules allow.
 *
 * Decisions are made under the agents' locks, so counts cannot change before the commit. Entries that belong together get one run, which
 * takes a place in the chain of every root among its events. An entry that may not begin keeps waiting, with the reason. The entries of
 * agents that no longer react end. The release is repeated when an entry has disappeared before it got its run, or when a run has started
 * on its object meanwhile.
 */
import type { AgentId, RunId, ProjectId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { workedFor } from "@tropism/domain/speakers"
import {
  isExclusive,
  dueMs,
  standsInLine,
  takesLine,
  type Wait,
  waitSentences
} from "@tropism/domain/waiting"
import { Effect, Context, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { retryTransaction, Database, keepingPlans, orDie } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { drive, share, Notifier } from "../outbox/notifier.ts"
import { Outbox } from "../outbox/outbox.ts"
import { takePlaces } from "../runs/chain-caps.ts"
import { type WaitingEntry, WaitingEntries, type Look, type Postponed } from "../runs/processing-log.ts"
import { Runs } from "../runs/run-store.ts"
import type { NewRun } from "../runs/run-types.ts"
import { Projects } from "../tenancy/projects.ts"
import {
  allowanceOf,
  lockAgents,
  mayMove,
  type Standing,
  standingsOf,
  type Allowance
} from "./agent-capacity.ts"
import { reactionRun } from "./reaction-run.ts"

const inactive = "The agent was disabled or deleted, or its trigger was changed, while this entry waited."
const tooOld = "The agent was disabled while this entry waited; enabling it again replays nothing."

type Active = Standing & { readonly config: ReactionConfig }

/** A planned run with the entries that it would handle. */
interface Group {
  readonly agent: Active
  readonly runId: RunId
  readonly entries: ReadonlyArray<WaitingEntry>
}

export const makeReleases = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const runs = yield* Runs
  const projects = yield* Projects
  const outbox = yield* Outbox
  const waiting = yield* WaitingEntries
  const withSql = Effect.provideService(SqlClient.SqlClient, sql)

  /** Queues the runs whose chains have a place and ends the entries of the others. */
  const begin = Effect.fnUntraced(function* (groups: ReadonlyArray<Group>) {
    const caps = yield* withSql(
      takePlaces(groups.map(({ entries }) => entries.map((entry) => entry.rootEventId)))
    ).pipe(Effect.provideService(Projects, projects))
    const refused = groups.flatMap(({ entries }, index) =>
      entries.flatMap((entry) => {
        const cap = caps[index]?.get(entry.rootEventId)
        return cap ? [{ entry, cap }] : []
      })
    )
    const capped = new Set(refused.map(({ entry }) => entry.id))
    const granted = groups.map((group) => ({
      ...group,
      entries: group.entries.filter((entry) => !capped.has(entry.id))
    }))
    const links = granted.flatMap(linksOf)
    // An entry that was purged since it was read gets no run and no place in a chain.
    if ((yield* waiting.link(links)) < links.length) return yield* retryTransaction
    yield* runs.queue(granted.flatMap(newRuns))
    yield* waiting.skip(refused.map(({ entry, cap }) => ({ ...entry, reason: cap.reason })))
    // The refusal of an external event is recorded in its entry alone.
    const noted = refused.filter(({ entry }) => entry.occurrence === null)
    if (noted.length > 0)
      yield* outbox.refuse(
        noted.map(({ entry: { eventId, agentId }, cap }) => ({ id: eventId, agentId, ...cap }))
      )
  })

  const gatherAll = Effect.fnUntraced(function* (agents: ReadonlyArray<Active>) {
    const most = Math.max(1, Math.floor(dispatchLimits.releaseHeads / agents.length))
    const found = yield* waiting.look(agents.map(({ agentId, config }) => lookOf(agentId, config, most)))
    const byId = new Map(agents.map((agent) => [agent.agentId, agent]))
    const isStale = ({ agentId, createdAt }: WaitingEntry): boolean => {
      const enabledAt = byId.get(agentId)?.enabledAt ?? null
      return enabledAt !== null && createdAt < enabledAt
    }
    yield* waiting.skip(found.filter(isStale).map((entry) => ({ ...entry, reason: tooOld })))
    const entries = found.filter((entry) => !isStale(entry))
    const exclusive = new Set(
      agents.filter(({ config }) => isExclusive(config)).map(({ agentId }) => agentId)
    )
    const busy = yield* waiting.busy(entries.filter(({ agentId }) => exclusive.has(agentId)))
    return {
      entries: Map.groupBy(entries, ({ agentId }) => agentId),
      busy,
      stale: found.length - entries.length
    }
  })

  const releaseOf = Effect.fnUntraced(function* (agents: ReadonlyArray<Active>) {
    if (agents.length === 0) return 0
    const { entries, busy, stale } = yield* gatherAll(agents)
    const busyOf = Map.groupBy(busy, ({ agentId }) => agentId)
    const decided = agents.map((agent) => {
      const busyObjects = new Set((busyOf.get(agent.agentId) ?? []).map((line) => line.graphObjectId))
      const own = entries.get(agent.agentId) ?? []
      return {
        agent,
        ...gather(agent.config, own, busyObjects, allowanceOf(agent), agent.now.getTime())
      }
    })
    const groups: Array<Group> = []
    for (const { agent, groups: found } of decided)
      for (const members of found) groups.push({ agent, runId: (yield* ids.next) as RunId, entries: members })
    // Before the runs begin, so that entries parked behind a run that its chain refuses are unparked with it.
    const postponed = yield* waiting.postpone(decided.flatMap((decision) => decision.postponed))
    yield* begin(groups)
    return stale + postponed + groups.reduce((sum, group) => sum + group.entries.length, 0)
  })

  /** Releases what may begin now of the agents that this transaction has locked and returns the number of entries changed. */
  const release = Effect.fn("release")(function* (agentIds: ReadonlyArray<AgentId>) {
    const standings = yield* withSql(standingsOf(agentIds))
    const skipped = yield* waiting.skipAllOf(
      standings.filter((standing) => !isActive(standing)).map(({ agentId }) => agentId),
      inactive,
      dispatchLimits.releaseSkips
    )
    return skipped + (yield* releaseOf(standings.filter(isActive).filter(mayMove)))
  })

  /** Locks agents that could begin something now, skipping those locked elsewhere, and releases what may begin. */
  const releaseDue = Effect.fn("releaseDue")(function* (agentIds: ReadonlyArray<AgentId>) {
    const locked = yield* withSql(lockAgents(agentIds, "pass"))
    return locked.length === 0 ? 0 : yield* release(locked)
  })

  return { release, releaseDue }
})

const isActive = (standing: Standing): standing is Active => standing.isActive && standing.config !== null

/** Links a run's entries; the newest of each object is exclusive where the agent handles an object alone. */
const linksOf = ({ agent, runId, entries }: Group) => {
  const newest = new Map(entries.map((entry) => [entry.graphObjectId, entry.id]))
  return entries.map(({ id, graphObjectId }) => ({
    id,
    runId,
    exclusive: isExclusive(agent.config) && newest.get(graphObjectId) === id
  }))
}

const newRuns = ({ agent, runId, entries }: Group): ReadonlyArray<NewRun> => {
  const [first, ...others] = entries
  if (first === undefined) return []
  const people = [...new Set(entries.map(({ userId }) => userId))]
  return [reactionRun(runId, agent, [first, ...others], workedFor(people, null))]
}

// Decides which waiting entries of an agent begin a run together, and why the others keep waiting.
//
// Pure: it works on what the releaser read under the agent's lock. A line (the entries of one object) is released from its head, in the
// order of versions.

export interface Gathering {
  /** The entries of each run that may begin, in the order of their events. */
  readonly groups: ReadonlyArray<ReadonlyArray<WaitingEntry>>
  readonly postponed: ReadonlyArray<Postponed>
}

/** How an agent's waiting entries are to be read. */
const lookOf = (id: AgentId, config: ReactionConfig, most: number): Look => {
  const { batchSize, debounceMs } = config
  return {
    id,
    heads: batchSize * Math.max(1, Math.floor(most / batchSize)),
    batch: batchSize,
    ofLine: standsInLine(config) ? (takesLine(config) ? runMaxEvents(config) : 1) : null,
    needsNewest: debounceMs > 0 && batchSize === 1
  }
}

const runMaxEvents = ({ batchSize }: ReactionConfig): number =>
  batchSize > 1 ? batchSize : dispatchLimits.runMaxEvents

/** Forms as many runs from the entries as are allowed. */
export const gather = (
  config: ReactionConfig,
  entries: ReadonlyArray<WaitingEntry>,
  busy: ReadonlySet<string>,
  allowance: Allowance,
  nowMs: number
): Gathering => {
  const unique = [...new Map(entries.map((entry) => [entry.id, entry])).values()]
  const free = unique.filter((entry) => !busy.has(entry.graphObjectId))
  const lines = [...Map.groupBy(free, (entry) => entry.graphObjectId).values()].map((line) =>
    line.toSorted((a, b) => a.objectVersion - b.objectVersion || a.attempt - b.attempt)
  )
  const { later, ready } = formed(config, lines, nowMs)
  const groups = ready.slice(0, allowance.runs)
  const released = new Set(groups.flat().map((entry) => entry.id))
  const taken = isExclusive(config) ? new Set(groups.flat().map((entry) => entry.graphObjectId)) : noObjects
  const heads = new Map(entries.map((entry) => [entry.headId, entry]))
  const postponed = [...heads]
    .filter(([id]) => !released.has(id))
    .map(([id, entry]): Postponed => {
      const isBehind = busy.has(entry.graphObjectId) || taken.has(entry.graphObjectId)
      if (isBehind) return { id, dueAt: null, isParked: true, reason: waitSentences.object }
      const due = later.get(entry.id)
      const wait: Wait = due === undefined ? allowance.wait : config.debounceMs > 0 ? "debounce" : "batch"
      return {
        id,
        // One entry of a batch has a due time, which brings the releaser back for all of them.
        dueAt: due !== undefined && (entry.isDue || due.isFirst) ? new Date(due.atMs).toISOString() : null,
        isParked: false,
        reason: waitSentences[wait]
      }
    })
  return { groups: groups.map(inEventOrder), postponed }
}

const noObjects: ReadonlySet<string> = new Set()

interface Formed {
  readonly ready: ReadonlyArray<ReadonlyArray<WaitingEntry>>
  /** Entries that are not due yet, with their due time. */
  readonly later: ReadonlyMap<WaitingEntry["id"], { readonly atMs: number; readonly isFirst: boolean }>
}

/** A run handles either graph events or external events, never both. */
const formed = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  const kinds = Map.groupBy(lines, ([entry]) => entry?.entityType === "mcpEvent")
  const parts = [...kinds.values()].map((kind) =>
    config.batchSize > 1 ? batches(config, kind, nowMs) : singles(config, kind, nowMs)
  )
  return {
    ready: parts.flatMap(({ ready }) => ready),
    later: new Map(parts.flatMap(({ later }) => [...later]))
  }
}

/** One run for each entry, or for each line. */
const singles = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  if (!standsInLine(config)) return { ready: lines.flat().map((entry) => [entry]), later: new Map() }
  const ready: Array<ReadonlyArray<WaitingEntry>> = []
  const later = new Map<WaitingEntry["id"], { readonly atMs: number; readonly isFirst: boolean }>()
  for (const line of lines) {
    const atMs = lineDueMs(config, line)
    if (atMs > nowMs) for (const entry of line) later.set(entry.id, { atMs, isFirst: true })
    else ready.push(takesLine(config) ? line : line.slice(0, 1))
  }
  return { ready, later }
}

const lineDueMs = (config: ReactionConfig, line: ReadonlyArray<WaitingEntry>): number => {
  if (config.debounceMs === 0) return 0
  const came = line.map((entry) => entry.createdAt.getTime())
  const newest = line.map((entry) => entry.newestAt?.getTime() ?? 0)
  return dueMs(config, Math.min(...came), Math.max(...came, ...newest))
}

/** One run for each full batch, and for a partial batch whose time has come. */
const batches = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  const chunks = chunksOf(config, lines)
  const last = chunks.at(-1) ?? []
  if (last.length === 0 || last.length === config.batchSize) return { ready: chunks, later: new Map() }
  const came = last.map((entry) => entry.createdAt.getTime())
  const atMs = dueMs(config, Math.min(...came), Math.max(...came))
  // A retry starts at its own time, however few entries there are.
  if (atMs <= nowMs || last.some((entry) => entry.attempt > 1)) return { ready: chunks, later: new Map() }
  return {
    ready: chunks.slice(0, -1),
    later: new Map(last.map((entry, index) => [entry.id, { atMs, isFirst: index === 0 }]))
  }
}

/** Divides the lines into batches. An object that is handled alone is in one batch only: the rest of its line waits for that run. */
const chunksOf = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>
): ReadonlyArray<ReadonlyArray<WaitingEntry>> => {
  const chunks: Array<Array<WaitingEntry>> = []
  for (const line of lines) {
    for (const [index, entry] of line.entries()) {
      const chunk = chunks.at(-1)
      if (chunk !== undefined && chunk.length < config.batchSize) chunk.push(entry)
      else if (index > 0 && isExclusive(config)) break
      else chunks.push([entry])
    }
  }
  return chunks
}

const inEventOrder = (entries: ReadonlyArray<WaitingEntry>): ReadonlyArray<WaitingEntry> =>
  entries.toSorted((a, b) => a.seq - b.seq)

// Releases waiting entries when they are due, project by project.
//
// The state is in database rows, so a releaser that dies loses nothing, and the agents' locks separate two of them. It wakes when a run
// ends, when an entry begins to wait, when work is overdue and at the next due time. Each project has one limited turn in a round.

/** A project with waiting work, and the time until the first of it is due. */
interface Waiting {
  readonly projectId: ProjectId
  readonly inMs: number
}

export class Releaser extends Context.Service<
  Releaser,
  {
    /** Releases until interrupted. */
    readonly run: Effect.Effect<never>
    /** Takes one turn for each project with due work; true when anything changed. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Releaser") {
  static readonly layer = Layer.effect(
    Releaser,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const waiting = yield* WaitingEntries
      const notifier = yield* Notifier
      const { releaseDue } = yield* makeReleases
      /** The agent at which a project's next turn continues after one that was too short for all. */
      const nextAgents = new Map<ProjectId, AgentId>()
      /** The time until the next due time; undefined when nothing waits for one. */
      let pauseMs: number | undefined

      const projects = orDie(sql<Waiting>`
        select project_id, (extract(epoch from due_at - clock_timestamp()) * 1000)::float8 as in_ms
        from kb.projects_with_waiting_entries()`)

      /**
       * Returns the agents that could begin a run, must end waiting entries or have not recorded why they wait; checked before their rows
       * are locked.
       */
      const able = Effect.fnUntraced(function* (agentIds: ReadonlyArray<AgentId>) {
        const standings = yield* Effect.provideService(standingsOf(agentIds), SqlClient.SqlClient, sql)
        return standings
          .filter((standing) => {
            const { runs, opensAtMs } = allowanceOf(standing)
            if (runs === 0 && opensAtMs !== null) comeBackIn(opensAtMs - standing.now.getTime())
            return !standing.isActive || mayMove(standing)
          })
          .map(({ agentId }) => agentId)
      })

      const comeBackIn = (ms: number): void => {
        pauseMs = Math.min(
          pauseMs ?? Number.POSITIVE_INFINITY,
          Math.max(dispatchLimits.releasePauseMinMs, Math.ceil(ms))
        )
      }

      const turn = Effect.fnUntraced(function* (projectId: ProjectId) {
        const due = yield* waiting.dueAgents(nextAgents.get(projectId), dispatchLimits.releaseAgents)
        const last = due.at(-1)
        if (last === undefined || due.length < dispatchLimits.releaseAgents) nextAgents.delete(projectId)
        else nextAgents.set(projectId, last)
        const moved = yield* releaseDue(yield* able(due))
        yield* CrashPoint.hit("release.beforeCommit")
        return moved
      })

      const round = Effect.gen(function* () {
        pauseMs = undefined
        const all = yield* projects
        // Without due work no turn continues there; keeping the position would make every round follow at once, without end.
        for (const projectId of nextAgents.keys())
          if (!all.some((one) => one.projectId === projectId && one.inMs <= 0)) nextAgents.delete(projectId)
        let moved = 0
        for (const { projectId, inMs } of all) {
          if (inMs > 0) comeBackIn(inMs)
          else
            moved += yield* share(
              "Releaser",
              projectId,
              keepingPlans(database.inProject(projectId, turn(projectId)))
            )
        }
        if (moved > 0) yield* CrashPoint.hit("release.afterCommit")
        return moved > 0 || nextAgents.size > 0
      }).pipe(Effect.withSpan("Releaser.round"))

      return Releaser.of({
        run: drive("Releaser", "releases", () => pauseMs, round).pipe(
          Effect.provideService(Notifier, notifier)
        ),
        round
      })
    })
  )
}

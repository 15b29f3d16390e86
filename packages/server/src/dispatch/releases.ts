/**
 * Turns waiting entries into queued runs, as far as their agents' rules allow.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Decides under the agents' locks: what was counted cannot change before the
 * commit. One run for the entries that belong together; each takes a place in
 * the chain of every root among its events. What may not begin waits on, with
 * the reason. Agents that react no more release nothing: their entries end. An
 * entry that is gone when it would get its run has the release decided anew, and
 * so has an object at which the agent was put to work meanwhile.
 */
import type { AgentId, RunId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { workedFor } from "@tropism/domain/speakers"
import { isExclusive } from "@tropism/domain/waiting"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { outpaced } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Outbox } from "../outbox/outbox.ts"
import type { NewRun } from "../run/claimed-run.ts"
import { Runs } from "../run/runs.ts"
import { type WaitingEntry, WaitingEntries } from "../run/waiting-entries.ts"
import { takePlaces } from "../run/chain-places.ts"
import { gather, lookOf } from "./gathering.ts"
import { reactionRun } from "./reaction-run.ts"
import { allowanceOf, lockAgents, mayMove, type Standing, standingsOf } from "./standing.ts"

const inactive = "The agent was disabled or deleted, or its trigger was changed, while this entry waited."
const tooOld = "The agent was disabled while this entry waited; enabling it again replays nothing."

type Active = Standing & { readonly config: ReactionConfig }

/** A run to be, with the entries that it would handle. */
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

  /** Queues the runs whose chains have a place for them, and ends the entries whose chain has none. */
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
    // What was purged since it was looked at has no run, and no place in a chain.
    if ((yield* waiting.link(links)) < links.length) return yield* outpaced
    yield* runs.queue(granted.flatMap(newRuns))
    yield* waiting.skip(refused.map(({ entry, cap }) => ({ ...entry, reason: cap.reason })))
    // What a foreign server told has its reason in the entry alone.
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
    // Before the runs begin: what is parked behind one that its chain refuses is let go with it.
    const postponed = yield* waiting.postpone(decided.flatMap((decision) => decision.postponed))
    yield* begin(groups)
    return stale + postponed + groups.reduce((sum, group) => sum + group.entries.length, 0)
  })

  /** Releases what may begin now of the agents that this transaction holds, and answers how many entries moved. */
  const release = Effect.fn("release")(function* (agentIds: ReadonlyArray<AgentId>) {
    const standings = yield* withSql(standingsOf(agentIds))
    const skipped = yield* waiting.skipAllOf(
      standings.filter((standing) => !isActive(standing)).map(({ agentId }) => agentId),
      inactive,
      dispatchLimits.releaseSkips
    )
    return skipped + (yield* releaseOf(standings.filter(isActive).filter(mayMove)))
  })

  /** Holds agents that could begin something now, as far as nobody else does, and releases what may begin. */
  const releaseDue = Effect.fn("releaseDue")(function* (agentIds: ReadonlyArray<AgentId>) {
    const locked = yield* withSql(lockAgents(agentIds, "pass"))
    return locked.length === 0 ? 0 : yield* release(locked)
  })

  return { release, releaseDue }
})

const isActive = (standing: Standing): standing is Active => standing.isActive && standing.config !== null

/** The entries of a run; the newest of each object keeps other runs from it, where the agent works on an object alone. */
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

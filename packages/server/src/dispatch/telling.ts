/**
 * Keeps what a foreign server told, and wakes the agents that hear it: once.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One transaction keeps the occurrences, opens an entry for each agent and
 * occurrence, and moves the cursor. Dying before the commit leaves the question to
 * be asked again; dying after it leaves nothing to do. What was told before is
 * known by the server's id of it, and the agents are held before the source, as a
 * save of theirs holds them.
 */
import type { AgentId, EntryId, GraphEventId, McpServerId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { sourceLimits } from "../tool/source-limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { type NewEntry, ProcessingLog, RetentionDays } from "../run/processing-log.ts"
import type { Telling } from "../tool/foreign-events.ts"
import { beginningToWait } from "./beginning-to-wait.ts"
import type { ClaimedSource } from "./event-sources.ts"
import { makeReleases } from "./releases.ts"
import { lockAgents, type Standing, standingsOf } from "./standing.ts"

/** An occurrence that was kept just now. */
interface Kept {
  readonly id: GraphEventId
  readonly number: number
}

type Hearer = Standing & { readonly config: ReactionConfig }

export const makeTelling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const retentionDays = yield* RetentionDays
  const ids = yield* Ids
  const log = yield* ProcessingLog
  const wakeUps = yield* WakeUps
  const { release } = yield* makeReleases
  const withSql = Effect.provideService(SqlClient.SqlClient, sql)

  /** Agents that heard the source before it was asked. */
  const hearersOf = Effect.fnUntraced(function* ({ claimedAt, id }: ClaimedSource) {
    const rows = yield* sql<{ readonly agentId: AgentId }>`
      select heard.agent_id from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
      where heard.source_id = ${id} and date_trunc('milliseconds', heard.since) <= ${claimedAt}::timestamptz
        and agent.enabled and agent.deleted_at is null order by heard.agent_id`
    return rows.map(({ agentId }) => agentId)
  })

  /** Keeps what was not told before, numbered on. */
  const keep = Effect.fnUntraced(function* (source: ClaimedSource, last: number, events: Telling["events"]) {
    if (events.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    const rows = yield* Effect.forEach(events, (event, index) =>
      Effect.map(ids.next, (id) => ({ id, number: last + index + 1, ...event }))
    )
    const kept = yield* sql<Kept>`
      insert into kb.mcp_occurrences (id, project_id, source_id, number, event_id, happened_at, payload, payload_omitted)
      select row.id, ${projectId}::uuid, ${source.id}::uuid, row.number, row."eventId", row."happenedAt", row.payload, row."payloadOmitted"
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as row(id uuid, number int, "eventId" text, "happenedAt" timestamptz, payload jsonb, "payloadOmitted" boolean)
      where row."happenedAt" > now() - make_interval(days => ${retentionDays}::int)
        and row."happenedAt" < now() + make_interval(secs => ${sourceLimits.occurrenceMaxAheadMs / 1_000}::float8)
      order by row.number on conflict (source_id, event_id) do nothing returning id, number`
    return kept.toSorted((a, b) => a.number - b.number)
  })

  /** Opens an entry for each occurrence and agent, in the order in which it was told. */
  const open = Effect.fnUntraced(function* (
    source: ClaimedSource,
    kept: ReadonlyArray<Kept>,
    hearers: ReadonlyArray<Hearer>
  ) {
    const entries: Array<NewEntry> = []
    for (const hearer of hearers)
      for (const [index, occurrence] of kept.entries()) {
        const isFirst = index === 0 && !hearer.hasWaiting
        entries.push(entryOf((yield* ids.next) as EntryId, source, occurrence, hearer, isFirst))
      }
    yield* log.open(entries)
    yield* sql.afterCommit(wakeUps.signal("releases"))
  })

  /** Moves the cursor on and lets the claim go. */
  const move = (source: ClaimedSource, serverId: McpServerId, telling: Telling, kept: number) => sql`
    update kb.mcp_event_sources set server_id = ${serverId}, cursor = ${telling.cursor},
      last_number = last_number + ${telling.events.length}, claim_token = null, claimed_until = null,
      failures = 0, failed_since = null, last_fault = null, polled_at = now(),
      truncated_at = case when ${telling.truncated} then now() else truncated_at end,
      due_at = now() + make_interval(secs => ${pauseMs(telling, kept) / 1_000}::float8)
    where id = ${source.id}`

  /** Keeps an answer, whoever it wakes; false when another program asks for the source now. */
  const tell = Effect.fn("telling")(function* (
    source: ClaimedSource,
    serverId: McpServerId,
    telling: Telling
  ) {
    const held = yield* withSql(
      lockAgents(telling.events.length === 0 ? [] : yield* hearersOf(source), "wait")
    )
    const [guarded] = yield* sql<{ readonly lastNumber: number }>`
      select last_number from kb.mcp_event_sources
      where id = ${source.id} and claim_token = ${source.claimToken}::uuid for no key update`
    if (guarded === undefined) return false
    const kept = yield* keep(source, guarded.lastNumber, telling.events)
    yield* move(source, serverId, telling, kept.length)
    if (kept.length > 0 && held.length > 0) {
      const standings = yield* withSql(standingsOf(held))
      yield* open(source, kept, standings.filter(isHearer))
      yield* release(held)
    }
    yield* CrashPoint.hit("source.beforeCommit")
    return true
  }, orDie)

  return { tell }
})

const isHearer = (standing: Standing): standing is Hearer => standing.isActive && standing.config !== null

/**
 * The entry of an agent for an occurrence.
 *
 * **Details** An occurrence is about nothing that could be looked at again, so none is skipped because the agent is busy:
 * it is a thing of its own. Where the rule gathers or works on one after the other, the source is what it does that for.
 */
const entryOf = (
  id: EntryId,
  source: ClaimedSource,
  occurrence: Kept,
  { config, ...standing }: Hearer,
  isFirst: boolean
): NewEntry => ({
  id,
  agentId: standing.agentId,
  entityType: "mcpEvent",
  graphObjectId: isOneLine(config) ? source.id : occurrence.id,
  objectVersion: occurrence.number,
  eventType: "occurred",
  eventId: occurrence.id,
  attempt: 1,
  ...beginningToWait(config, { config, ...standing }, isFirst),
  skips: false
})

const isOneLine = ({ concurrencyStrategy, debounceMs }: ReactionConfig): boolean =>
  concurrencyStrategy === "latest" || concurrencyStrategy === "queue" || debounceMs > 0

/** When to ask again: at once while there is more, as long as the server tells anything new; else as it wishes, within bounds. */
const pauseMs = ({ hasMore, nextPollMs }: Telling, kept: number): number => {
  if (hasMore) return kept > 0 ? 0 : sourceLimits.pollMinMs
  const wished = nextPollMs ?? sourceLimits.pollMs
  return Math.min(sourceLimits.pollMaxMs, Math.max(sourceLimits.pollMinMs, wished))
}

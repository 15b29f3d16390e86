/**
 * Polls external servers for events, for the agents that listen.
 *
 * The claim is one transaction, the request runs outside any, and storing the answer is another that the claim fences. A crash therefore
 * loses nothing, and two servers never store the same event. A slow server does not delay others: a limited number of requests run
 * concurrently, also per project, and projects take turns.
 */
import type { ProjectId, McpServerId, AgentId, EntryId, GraphEventId } from "@tropism/domain/ids"
import { isAllowedEvent } from "@tropism/domain/mcp-server"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { makeFairSlots } from "../outbox/fair-slots.ts"
import { drive, share, untilNotified, Notifier } from "../outbox/notifier.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { isStopped } from "../runs/kill-switches.ts"
import { type NewEntry, ProcessingLog, RetentionDays } from "../runs/processing-log.ts"
import { ExternalEvents, sourceLimits, type Telling } from "../tools/external-mcp/events.ts"
import { answered, lineOf } from "../tools/external-mcp/faults.ts"
import { type KeptServer, McpServers } from "../tools/external-mcp/servers.ts"
import { beginningToWait, lockAgents, type Standing, standingsOf } from "./agent-capacity.ts"
import { makeReleases } from "./releases.ts"

export class SourcePoller extends Context.Service<
  SourcePoller,
  {
    /** Polls until interrupted. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/dispatch/SourcePoller") {
  static readonly layer = Layer.effect(
    SourcePoller,
    Effect.gen(function* () {
      const database = yield* Database
      const notifier = yield* Notifier
      const foreign = yield* ExternalEvents
      const servers = yield* McpServers
      const sources = yield* makeEventSources
      const { tell } = yield* makeTelling

      const ask = Effect.fnUntraced(function* (source: ClaimedSource, server: KeptServer | undefined) {
        const { name, serverName } = source
        if (server === undefined)
          return yield* answered(`The project has no MCP server named ${serverName} that is enabled`)
        if (!isAllowedEvent(server.config, name))
          return yield* answered(`The allowedEvents of ${serverName} do not name ${name} any more`)
        // The cursor of another server with the same name is meaningless to this one.
        const cursor = source.serverId === server.id ? source.cursor : null
        // External events are for agents and never use a member's account.
        const whom = { ...server, member: null }
        const telling = yield* foreign.ask(whom, { name, arguments: source.arguments, cursor })
        return { serverId: server.id, telling }
      })

      /** Makes one request and handles its outcome; an interruption releases the claim so that others may poll at once. */
      const turn = Effect.fnUntraced(
        function* (projectId: ProjectId, source: ClaimedSource, server: KeptServer | undefined) {
          yield* CrashPoint.hit("source.afterClaim")
          const answer = yield* Effect.result(ask(source, server))
          yield* CrashPoint.hit("source.beforeKeep")
          if (answer._tag === "Failure")
            yield* retryDuringOutages(
              database.inProject(projectId, sources.noteFault(source, answer.failure.message))
            )
          else
            yield* retryDuringOutages(
              database.inProject(projectId, tell(source, answer.success.serverId, answer.success.telling))
            )
          yield* CrashPoint.hit("source.afterCommit")
          return 1
        },
        (work, projectId, source) =>
          Effect.onInterrupt(work, () => database.inProject(projectId, sources.release(source)))
      )

      const take = (limit: number) =>
        Effect.gen(function* () {
          const claimed = yield* sources.claim(limit)
          const known = claimed.length === 0 ? [] : yield* servers.enabled
          return claimed.map((source) => ({
            source,
            server: known.find(({ config }) => config.name === source.serverName)
          }))
        })

      const run = Effect.gen(function* () {
        const { occupy, round } = yield* makeFairSlots({
          places: sourceLimits.concurrentPolls,
          sparePlaces: sourceLimits.sparePolls,
          placesPerProject: sourceLimits.pollsPerProject
        })
        // Start the fiber within the claim, so that an interruption releases every claimed source.
        const begin = Effect.fnUntraced(function* (projectId: ProjectId, atMost: number) {
          const taken = yield* database.inProject(projectId, take(atMost))
          for (const { server, source } of taken)
            yield* occupy(
              projectId,
              Effect.andThen(
                share("Source poller", projectId, turn(projectId, source, server)),
                // A slot is free, and there may be more to poll.
                notifier.signal("sources")
              )
            )
          return taken.length
        }, Effect.uninterruptible)
        const asking = Effect.flatMap(sources.due, (due) =>
          round(due, (projectId, atMost) => share("Source poller", projectId, begin(projectId, atMost)))
        )
        return yield* drive("Source poller", "sources", untilNotified, asking)
      }).pipe(Effect.scoped, Effect.provideService(Notifier, notifier))

      return SourcePoller.of({ run })
    })
  )
}

// Manages the sources of external events: claims, cursors and failures.
//
// One process polls a source at a time; its writes are fenced by its claim, on the database's clock. A source without an enabled listening
// agent becomes inactive and loses its cursor, so a later listener starts at that time.

/** A source that this process may poll now. */
interface ClaimedSource {
  readonly id: string
  readonly claimToken: string
  readonly claimedAt: Date
  readonly serverName: string
  /** The server that the cursor belongs to. */
  readonly serverId: McpServerId | null
  readonly name: string
  readonly arguments: unknown
  readonly cursor: string | null
}

/** The queries of sources, except storing events. */
export const makeEventSources = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const due = orDie(
    sql<{
      readonly projectId: ProjectId
    }>`select project_id from kb.projects_with_due_sources() as project_id order by project_id`
  )

  /** Claims up to `limit` due sources, the longest due first; none while a kill switch is on. */
  const claim = Effect.fn("EventSources.claim")(function* (limit: number) {
    const { projectId } = yield* ProjectTransaction
    const claimed = yield* sql<ClaimedSource>`
      update kb.mcp_event_sources source set claim_token = gen_random_uuid(),
        claimed_until = now() + make_interval(secs => ${sourceLimits.claimMs / 1_000}::float8)
      where source.id = any(array(
        select id from kb.mcp_event_sources where project_id = ${projectId} and due_at <= now()
          and (claimed_until is null or claimed_until < now()) and not ${isStopped(sql)}
        order by due_at, id limit ${limit} for no key update skip locked
      ))
      returning source.id, claim_token, now() as claimed_at, server_name, server_id, name, arguments, cursor`
    if (claimed.length === 0) return []
    // A separate statement, so that a listener added while this waited for the row lock is visible.
    const asleep = yield* sql<{ readonly id: string }>`
      update kb.mcp_event_sources source set due_at = null, cursor = null, claim_token = null, claimed_until = null
      where id = any(${claimed.map(({ id }) => id)}::uuid[]) and not exists (
        select 1 from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
        where heard.source_id = source.id and agent.enabled and agent.deleted_at is null)
      returning id`
    const sleeping = new Set(asleep.map(({ id }) => id))
    return claimed.filter(({ id }) => !sleeping.has(id))
  }, orDie)

  /** Records a failed request; the next waits, longer each time. */
  const noteFault = Effect.fn("EventSources.noteFault")(function* (
    { claimToken, id }: ClaimedSource,
    fault: string
  ) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.mcp_event_sources set claim_token = null, claimed_until = null, failures = failures + 1,
        failed_since = coalesce(failed_since, now()), last_fault = ${lineOf(fault)},
        due_at = now() + make_interval(secs => least(${sourceLimits.backOffMaxMs}::float8,
          ${sourceLimits.backOffBaseMs}::float8 * power(2, least(failures, 30))) / 1000)
      where id = ${id} and project_id = ${projectId} and claim_token = ${claimToken}::uuid`
  }, orDie)

  /** Releases the claim of an interrupted request, so that the source may be polled at once. */
  const release = Effect.fn("EventSources.release")(function* ({ claimToken, id }: ClaimedSource) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.mcp_event_sources set claim_token = null, claimed_until = null
      where id = ${id} and project_id = ${projectId} and claim_token = ${claimToken}::uuid`
  }, orDie)

  return { due, claim, noteFault, release }
})

// Stores external events and triggers the agents that listen, once.
//
// One transaction stores the occurrences, opens an entry for each agent and occurrence, and advances the cursor. A crash before the commit
// repeats the request, one after it leaves nothing to do. The server's own event id identifies duplicates. The agents are locked before the
// source, in the order of a save of an agent.

/** An occurrence that was just stored. */
interface Kept {
  readonly id: GraphEventId
  readonly number: number
}

type Hearer = Standing & { readonly config: ReactionConfig }

const makeTelling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const retentionDays = yield* RetentionDays
  const ids = yield* Ids
  const log = yield* ProcessingLog
  const notifier = yield* Notifier
  const { release } = yield* makeReleases
  const withSql = Effect.provideService(SqlClient.SqlClient, sql)

  /** Returns the agents that listened to the source before the request. */
  const hearersOf = Effect.fnUntraced(function* ({ claimedAt, id }: ClaimedSource) {
    const rows = yield* sql<{ readonly agentId: AgentId }>`
      select heard.agent_id from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
      where heard.source_id = ${id} and date_trunc('milliseconds', heard.since) <= ${claimedAt}::timestamptz
        and agent.enabled and agent.deleted_at is null order by heard.agent_id`
    return rows.map(({ agentId }) => agentId)
  })

  /** Stores new events with consecutive numbers. */
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

  /** Opens an entry for each occurrence and agent, in the order of the events. */
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
    yield* sql.afterCommit(notifier.signal("releases"))
  })

  /** Advances the cursor and releases the claim. */
  const move = (source: ClaimedSource, serverId: McpServerId, telling: Telling, kept: number) => sql`
    update kb.mcp_event_sources set server_id = ${serverId}, cursor = ${telling.cursor},
      last_number = last_number + ${telling.events.length}, claim_token = null, claimed_until = null,
      failures = 0, failed_since = null, last_fault = null, polled_at = now(),
      truncated_at = case when ${telling.truncated} then now() else truncated_at end,
      due_at = now() + make_interval(secs => ${pauseMs(telling, kept) / 1_000}::float8)
    where id = ${source.id}`

  /** Stores an answer, even when it triggers no agent; false when another process holds the source now. */
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
 * Returns an agent's entry for an occurrence.
 *
 * **Details** An occurrence has no object whose state could be read again, so none is skipped while the agent is busy. Rules that gather
 * events or handle them one at a time apply per source.
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

/**
 * When to poll again: at once while there is more, as long as the server sends anything new; otherwise as the server asks, within limits.
 */
const pauseMs = ({ hasMore, nextPollMs }: Telling, kept: number): number => {
  if (hasMore) return kept > 0 ? 0 : sourceLimits.pollMinMs
  const wished = nextPollMs ?? sourceLimits.pollMs
  return Math.min(sourceLimits.pollMaxMs, Math.max(sourceLimits.pollMinMs, wished))
}

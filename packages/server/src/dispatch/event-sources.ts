/**
 * The sources of foreign events: which is asked next, by whom, and how that went.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One program asks for a source at a time; what it writes is guarded by its claim,
 * on the database's clock. A source that no enabled agent hears any more falls
 * asleep here and forgets its cursor, so whoever hears it again begins with then.
 */
import type { McpServerId, ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { isStopped } from "../run/kill-switches.ts"
import { lineOf } from "../tool/foreign-fault.ts"
import { sourceLimits } from "../tool/source-limits.ts"

/** A source that this program may ask for now. */
export interface ClaimedSource {
  readonly id: string
  readonly claimToken: string
  readonly claimedAt: Date
  readonly serverName: string
  /** Whose cursor it is. */
  readonly serverId: McpServerId | null
  readonly name: string
  readonly arguments: unknown
  readonly cursor: string | null
}

/** The reads and writes of sources, but for what is told. */
export const makeEventSources = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const due = orDie(
    sql<{
      readonly projectId: ProjectId
    }>`select project_id from kb.projects_with_due_sources() as project_id order by project_id`
  )

  /** Takes at most so many that are due, the longest due first; none while a kill switch is on. */
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
    // A statement of its own: who began to hear has held the row before, and is seen now.
    const asleep = yield* sql<{ readonly id: string }>`
      update kb.mcp_event_sources source set due_at = null, cursor = null, claim_token = null, claimed_until = null
      where id = any(${claimed.map(({ id }) => id)}::uuid[]) and not exists (
        select 1 from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
        where heard.source_id = source.id and agent.enabled and agent.deleted_at is null)
      returning id`
    const sleeping = new Set(asleep.map(({ id }) => id))
    return claimed.filter(({ id }) => !sleeping.has(id))
  }, orDie)

  /** Notes that a question had no answer that could be used; the next waits, longer each time. */
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

  /** Lets a claim go whose question nobody will hear the answer of: it may be asked again at once. */
  const release = Effect.fn("EventSources.release")(function* ({ claimToken, id }: ClaimedSource) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.mcp_event_sources set claim_token = null, claimed_until = null
      where id = ${id} and project_id = ${projectId} and claim_token = ${claimToken}::uuid`
  }, orDie)

  return { due, claim, noteFault, release }
})

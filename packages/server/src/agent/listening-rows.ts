/**
 * The rows by which the poller finds what agents hear of foreign servers.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Written in the transaction that keeps the definition, which holds the agent. A
 * source is made when it is first named. One that nobody else hears begins now:
 * enabling an agent replays nothing, whatever its server would still tell.
 */
import { createHash } from "node:crypto"
import type { AgentDefinition } from "@tropism/domain/agent"
import type { AgentId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { argumentsOf, type McpEventListener } from "@tropism/domain/mcp-event"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { WakeUps } from "../outbox/wake-ups.ts"

/** The writes of what an agent listens to. */
export const makeListeningRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const wakeUps = yield* WakeUps

  /** Makes the rows what the definition says; those that stay keep since when the agent hears. */
  const keepListening = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition) {
    const { projectId } = yield* ProjectTransaction
    const listened = listenedTo(definition)
    if (listened.length === 0) return yield* clearListening(id)
    const wanted = yield* Effect.forEach(listened, (one) => Effect.map(ids.next, (id) => ({ id, ...one })))
    const rows = JSON.stringify(wanted)
    const row = sql`jsonb_to_recordset(${rows}::text::jsonb) as row(id uuid, server text, name text, arguments jsonb, digest text)`
    yield* sql`
      insert into kb.mcp_event_sources (id, project_id, server_name, name, arguments, arguments_digest)
      select row.id, ${projectId}::uuid, row.server, row.name, row.arguments, row.digest from ${row}
      order by row.server, row.name, row.digest on conflict do nothing`
    // In one order, so that two saves that name the same wait for each other and not in a circle.
    const sources = yield* sql<{ readonly id: string }>`
      select source.id from kb.mcp_event_sources source join ${row}
        on source.server_name = row.server and source.name = row.name and source.arguments_digest = row.digest
      where source.project_id = ${projectId} order by source.id for no key update of source`
    const sourceIds = sources.map((source) => source.id)
    yield* sql`delete from kb.agent_mcp_events where agent_id = ${id} and source_id <> all(${sourceIds}::uuid[])`
    // What is heard by nobody yet begins now, and whoever asks for it at the moment asks in vain.
    yield* sql`
      update kb.mcp_event_sources source set due_at = now(), cursor = null, claim_token = null, claimed_until = null,
        failures = 0, failed_since = null, last_fault = null
      where source.id = any(${sourceIds}::uuid[]) and not exists (
        select 1 from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
        where heard.source_id = source.id and agent.enabled and agent.deleted_at is null)`
    yield* sql`
      insert into kb.agent_mcp_events (agent_id, source_id, project_id)
      select ${id}::uuid, source_id, ${projectId}::uuid from unnest(${sourceIds}::uuid[]) as source_id on conflict do nothing`
    yield* sql.afterCommit(wakeUps.signal("sources"))
  })

  /** Lets the agent hear nothing any more; the poller finds what nobody hears. */
  const clearListening = (id: AgentId) => sql`delete from kb.agent_mcp_events where agent_id = ${id}`

  return { keepListening, clearListening }
})

const listenedTo = ({ enabled, reactionConfig, triggerType }: AgentDefinition) =>
  enabled && triggerType === "reaction" ? (reactionConfig?.mcpEvents ?? []).map(rowOf) : []

const rowOf = (listener: McpEventListener) => ({
  server: listener.server,
  name: listener.name,
  arguments: argumentsOf(listener),
  digest: createHash("sha256")
    .update(canonicalJson(argumentsOf(listener)))
    .digest("hex")
})

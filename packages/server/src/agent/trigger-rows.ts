/**
 * The rows by which the dispatcher, the scheduler and the poller of foreign events find an agent.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * They follow from the definition and are written in the transaction that keeps
 * it. A schedule whose expression and zone stay keeps its row: another prompt
 * must not cost an instant that is due and not fired yet.
 */
import type { AgentDefinition } from "@tropism/domain/agent"
import type { GraphEvent } from "@tropism/domain/graph"
import type { AgentId } from "@tropism/domain/ids"
import { standsInLine } from "@tropism/domain/waiting"
import { Effect, Option, Result } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { nextInstant, readCron } from "./cron.ts"
import { makeListeningRows } from "./listening-rows.ts"

/** The writes of an agent's triggers. */
export const makeTriggerRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
  const { clearListening, keepListening } = yield* makeListeningRows

  /** Makes the rows what the definition says. */
  const keep = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition, now: Date) {
    yield* keepReaction(id, definition)
    yield* keepListening(id, definition)
    yield* keepSchedule(id, definition, now)
  })

  const keepReaction = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition) {
    const { projectId } = yield* ProjectTransaction
    yield* clearReaction(id, definition.reactionConfig === null || standsInLine(definition.reactionConfig))
    if (!definition.enabled || definition.triggerType !== "reaction" || !definition.reactionConfig) return
    const { objectTypes, relationshipTypes, events } = definition.reactionConfig
    const heard = JSON.stringify([
      ...listening("graphObject", objectTypes),
      ...(relationshipTypes === null ? [] : listening("relationship", relationshipTypes))
    ])
    yield* sql`
      insert into kb.agent_reactions (project_id, entity_type, object_type, event_type, agent_id)
      select distinct ${projectId}::uuid, heard."entityType", heard.type, event_type, ${id}::uuid
      from jsonb_to_recordset(${heard}::text::jsonb) as heard("entityType" text, type text), unnest(${events}::text[]) event_type`
  })

  /** Forgets what the agent listens to. What waits for it is looked at anew, by the rule as it is from now on, also behind the head of its line; the pause before a retry is not the rule's. */
  const clearReaction = Effect.fnUntraced(function* (id: AgentId, isInLine: boolean) {
    yield* sql`delete from kb.agent_reactions where agent_id = ${id}`
    yield* sql`
      update kb.agent_processing_log
      set due_at = case when attempt > 1 then due_at end, parked = parked and ${isInLine}
      where agent_id = ${id} and status = 'pending' and run_id is null
        and ((attempt = 1 and due_at is not null) or (parked and not ${isInLine}))`
    yield* sql.afterCommit(wakeUps.signal("releases"))
  })

  const keepSchedule = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition, now: Date) {
    const { projectId } = yield* ProjectTransaction
    const { cronSchedule, timezone } = definition
    const next = nextFireOf(definition, now)
    if (next === undefined) return yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
    yield* sql`
      delete from kb.agent_schedules where agent_id = ${id} and (cron, timezone) is distinct from (${cronSchedule}, ${timezone})`
    yield* sql`
      insert into kb.agent_schedules (agent_id, project_id, cron, timezone, next_fire_at)
      values (${id}, ${projectId}, ${cronSchedule}, ${timezone}, ${next}) on conflict (agent_id) do nothing`
  })

  /** Lets nothing wake the agent any more. */
  const clear = Effect.fnUntraced(function* (id: AgentId) {
    yield* clearReaction(id, true)
    yield* clearListening(id)
    yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
  })

  return { keep, clear }
})

/** The types under which the dispatcher finds a listener; naming none is listening to all. */
const listening = (entityType: GraphEvent["entityType"], types: ReadonlyArray<string>) =>
  (types.length === 0 ? ["*"] : types).map((type) => ({ entityType, type }))

const nextFireOf = (definition: AgentDefinition, now: Date): Date | undefined => {
  const { cronSchedule, enabled, timezone, triggerType } = definition
  if (!enabled || triggerType !== "schedule" || cronSchedule === null) return undefined
  return Result.getSuccess(readCron(cronSchedule, timezone)).pipe(
    Option.map((rule) => nextInstant(rule, now)),
    Option.getOrUndefined
  )
}

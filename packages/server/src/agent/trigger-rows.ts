/**
 * The rows by which the dispatcher and the scheduler find an agent.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * They follow from the definition and are written in the transaction that keeps
 * it. A schedule whose expression and zone stay keeps its row: another prompt
 * must not cost an instant that is due and not fired yet.
 */
import type { AgentDefinition } from "@tropism/domain/agent"
import type { AgentId } from "@tropism/domain/ids"
import { Effect, Option, Result } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { nextInstant, readCron } from "./cron.ts"

/** The writes of an agent's triggers. */
export const makeTriggerRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Makes the rows what the definition says. */
  const keep = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition, now: Date) {
    yield* keepReaction(id, definition)
    yield* keepSchedule(id, definition, now)
  })

  const keepReaction = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`delete from kb.agent_reactions where agent_id = ${id}`
    if (!definition.enabled || definition.triggerType !== "reaction" || !definition.reactionConfig) return
    const { objectTypes, events } = definition.reactionConfig
    yield* sql`
      insert into kb.agent_reactions (project_id, object_type, event_type, agent_id)
      select distinct ${projectId}::uuid, object_type, event_type, ${id}::uuid
      from unnest(${objectTypes.length === 0 ? ["*"] : objectTypes}::text[]) object_type, unnest(${events}::text[]) event_type`
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
    yield* sql`delete from kb.agent_reactions where agent_id = ${id}`
    yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
  })

  return { keep, clear }
})

const nextFireOf = (definition: AgentDefinition, now: Date): Date | undefined => {
  const { cronSchedule, enabled, timezone, triggerType } = definition
  if (!enabled || triggerType !== "schedule" || cronSchedule === null) return undefined
  return Result.getSuccess(readCron(cronSchedule, timezone)).pipe(
    Option.map((rule) => nextInstant(rule, now)),
    Option.getOrUndefined
  )
}

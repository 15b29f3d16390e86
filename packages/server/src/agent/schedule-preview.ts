/**
 * Tells when an agent's schedule fires next.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 */
import type { Agent } from "@tropism/domain/agent"
import type { SchedulePreview } from "@tropism/domain/schedule"
import { DateTime, Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import { type CronRule, readCron } from "./cron.ts"
import { nextInstants, readSchedule } from "./schedule.ts"

/** The next instants of an agent's schedule; undefined when it has none. */
export const previewSchedule = Effect.fn("previewSchedule")(function* (agent: Agent) {
  const { catchUp, cronSchedule, enabled, overlapPolicy, timezone, triggerType } = agent
  if (cronSchedule === null) return undefined
  const sql = yield* SqlClient.SqlClient
  const { backlogFrom, backlogUntil, now } = yield* Effect.flatMap(
    sql<{ now: Date; backlogFrom: Date | null; backlogUntil: Date | null }>`
      select now() as now, backlog_from, backlog_until from (select 1) present
      left join kb.agent_schedules schedule on schedule.agent_id = ${agent.id}`,
    onlyRow
  )
  const rule = Result.getOrUndefined(readCron(cronSchedule, timezone))
  const preview: SchedulePreview = {
    cronSchedule,
    timezone,
    catchUp,
    overlapPolicy,
    active: enabled && triggerType === "schedule",
    fires: rule ? nextInstants(rule, now, agentLimits.previewFires).map((at) => shown(rule, at)) : [],
    waiting:
      backlogFrom && backlogUntil
        ? { from: backlogFrom.toISOString(), until: backlogUntil.toISOString() }
        : null
  }
  return preview
}, orDie)

/** The next instants of a schedule that nobody has; one that is none is refused with its place. */
export const firesOf = Effect.fn("firesOf")(function* (cronSchedule: string, timezone: string) {
  const now = yield* DateTime.nowAsDate
  const rule = yield* readSchedule(cronSchedule, timezone, now)
  return nextInstants(rule, now, agentLimits.previewFires).map((at) => shown(rule, at))
})

const shown = ({ zone }: CronRule, at: Date) => ({
  at: at.toISOString(),
  localTime: DateTime.formatIsoOffset(DateTime.makeZonedUnsafe(at, { timeZone: zone }))
})

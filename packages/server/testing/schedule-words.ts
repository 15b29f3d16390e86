/**
 * The words in which stories speak of schedules: agents that the clock wakes, and time that passes for their rows.
 */
import { Effect } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { ask } from "./owner-rows.ts"
import { eventually, type Json, type Story } from "./platform.ts"
import { runsOf, watcher } from "./story-words.ts"

/** An agent that the clock wakes. */
export const clerk = (cronSchedule: string, overrides: Record<string, unknown> = {}) =>
  watcher({ name: "clerk", triggerType: "schedule", cronSchedule, reactionConfig: null, ...overrides })

/** The rows by which the scheduler knows an agent: cron expression and next instant. */
export const schedulesOf = (access: PostgresAccess, agent: Json) =>
  Effect.map(
    ask(access, "select cron, next_fire_at from kb.agent_schedules where agent_id = $1", [agent.id]),
    (rows) => rows.map(([cron, at]) => ({ cron, at: new Date(String(at)).toISOString() }))
  )

/** Lets time pass until an instant of the schedule: the row is due from then on. */
export const passUntil = (access: PostgresAccess, agent: Json, at: Date) =>
  ask(access, "update kb.agent_schedules set next_fire_at = $2::timestamptz where agent_id = $1", [
    agent.id,
    at.toISOString()
  ])

/** The run of one instant, once it is over; the wall's clock may come by and add runs of its own. */
export const runDueAt = (story: Story, agent: Json, at: Date): Effect.Effect<Json> =>
  Effect.map(
    eventually(runsOf(story, agent), (runs) =>
      runs.some((run) => run.trigger.dueAt === at.toISOString() && run.completedAt !== null)
    ),
    (runs) => runs.find((run) => run.trigger.dueAt === at.toISOString())
  )

/** The instant so many periods before one. */
export const periodsBefore = (at: string, times: number, periodMs: number) =>
  new Date(Date.parse(at) - times * periodMs)

/** The instants for which an agent's runs were made or skipped, the oldest first, up to one. */
export const instantsUntil = (runs: ReadonlyArray<Json>, until: Date): ReadonlyArray<string> =>
  runs
    .map((run): string => run.trigger.dueAt)
    .filter((dueAt) => dueAt <= until.toISOString())
    .toSorted()

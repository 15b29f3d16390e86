/**
 * Queues the runs of schedules that are due.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A schedule is a row with its next instant. Claiming it, queueing its run and
 * storing the next instant are one transaction, and a run is unique per agent
 * and due instant: however many servers look, it fires once. After downtime the
 * stored instant fires, once, and the next lies ahead.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { AgentId, GraphEventId, ProjectId, RunId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { nextFire } from "../agent/schedule.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { drive, share, WakeUps } from "../outbox/wake-ups.ts"
import type { NewRun } from "../run/claimed-run.ts"
import { Runs } from "../run/runs.ts"

interface DueSchedule {
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly cron: string
  readonly timezone: string
  readonly nextFireAt: Date
}

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Looks for due schedules for ever. */
    readonly run: Effect.Effect<never>
    /** Queues what is due now; true when there was anything. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Scheduler") {
  static readonly layer = Layer.effect(
    Scheduler,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const runs = yield* Runs
      const ids = yield* Ids
      const wakeUps = yield* WakeUps

      const fire = Effect.fnUntraced(function* (schedule: DueSchedule) {
        const id = (yield* ids.next) as RunId
        const dueAt = schedule.nextFireAt.toISOString()
        const now = new Date(yield* Clock.currentTimeMillis)
        const next = yield* Effect.orDie(
          nextFire(schedule.cron, schedule.timezone, now > schedule.nextFireAt ? now : schedule.nextFireAt)
        )
        yield* sql`update kb.agent_schedules set next_fire_at = ${next} where agent_id = ${schedule.agentId}`
        const run: NewRun = {
          id,
          agentId: schedule.agentId,
          agentVersion: schedule.agentVersion,
          trigger: { type: "schedule", dueAt },
          contextName: ContextName.make(`run-${id}`),
          // What a schedule begins is a chain of its own, named after its first run.
          rootEventId: id as string as GraphEventId,
          depth: 0,
          userId: null,
          dueAt
        }
        yield* runs.queue([run])
      })

      const batch = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const due = yield* sql<DueSchedule>`
          select schedule.agent_id, agent.version as agent_version, schedule.cron, schedule.timezone, schedule.next_fire_at
          from kb.agent_schedules schedule join kb.agents agent on agent.id = schedule.agent_id
          where schedule.project_id = ${projectId} and schedule.next_fire_at <= now() and agent.enabled and agent.deleted_at is null
          order by schedule.next_fire_at limit ${dispatchLimits.batchSchedules} for update of schedule skip locked`
        yield* Effect.forEach(due, fire)
        yield* CrashPoint.hit("schedule.beforeCommit")
        return due.length
      }).pipe(orDie)

      const round = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_due_schedules() as project_id`
        )
        let fired = 0
        for (const { projectId } of projects)
          fired += yield* share("Scheduler", projectId, database.inProject(projectId, batch))
        if (fired > 0) yield* CrashPoint.hit("schedule.afterCommit")
        return fired > 0
      }).pipe(Effect.withSpan("Scheduler.round"))

      return Scheduler.of({
        run: drive("Scheduler", "schedules", dispatchLimits.scheduleIntervalMs, round).pipe(
          Effect.provideService(WakeUps, wakeUps)
        ),
        round
      })
    })
  )
}

/**
 * Ends the runs below a run that nobody above them wants any more, and pauses those whose time is over.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A run is unwanted when its parent was cancelled or has failed, when a run above a
 * parent that completed was or has, or when the call that spawned it was abandoned: a
 * run that rests at a limit outlives the parent that took what there was of its work.
 * Each is cancelled in a transaction of its own,
 * after the one that made it unwanted, so no child is locked while a parent is
 * held. Who is cancelled spawns no more: it is looked again until none is left.
 * A crash in between loses nothing, because a loop of its own looks for the same: each second
 * for what is at work, and now and then for what rests at a limit and does nothing. The same loop pauses
 * runs that are past their deadline and grace: whoever works on them is dead, stands still or waits too long.
 */
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { drive, share, untilWoken, WakeUps } from "../outbox/wake-ups.ts"
import { Endings } from "./endings.ts"

interface Unwanted {
  readonly id: RunId
  readonly contextName: string
  readonly because: string
}

export class Descendants extends Context.Service<
  Descendants,
  {
    /** Cancels whatever is alive below a run and unwanted, and answers how many runs there were; afterwards nothing there writes. */
    readonly cancelBelow: (projectId: ProjectId, runId: RunId) => Effect.Effect<number>
    /** Cancels what is unwanted and rests at a limit in any project, and answers how many runs there were. */
    readonly cancelResting: Effect.Effect<number>
    /** Cancels unwanted runs, pauses those past their grace, and lets those go on that wait for others and have used their time, for ever. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/run/Descendants") {
  static readonly layer = Layer.effect(
    Descendants,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const endings = yield* Endings
      const wakeUps = yield* WakeUps

      const unwanted = Effect.fnUntraced(function* (where: Statement.Fragment) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<Unwanted>`
          select child.id, child.context_name, case
            when parent.status = 'cancelled' then 'The run that spawned it was cancelled'
            when parent.status = 'failed' then 'The run that spawned it failed'
            when call.status = 'abandoned' then 'The run that spawned it does not wait for it any more'
            else 'A run above the one that spawned it was cancelled or failed' end as because
          from kb.agent_runs child
          join kb.agent_runs parent on parent.id = child.parent_run_id
          left join kb.tool_calls call on call.id = child.spawned_by
          where child.project_id = ${projectId} and child.parent_run_id is not null and ${where}
            and child.status in ('queued', 'running', 'paused')
            and (parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
              or parent.status = 'completed' and exists (
                select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed')))
          order by child.id limit ${runLimits.cancelBatchRuns}`
      }, orDie)

      /** One that has ended meanwhile needs no end. */
      const cancel = (projectId: ProjectId, run: Unwanted) =>
        database.inProject(
          projectId,
          Effect.catchTag(endings.cancel(run, { because: run.because }), "RunNotInState", () => Effect.void)
        )

      /** Looks and cancels until nothing is found: whom the last round cancelled makes those below unwanted. */
      const cancelWhile = Effect.fnUntraced(function* (projectId: ProjectId, where: Statement.Fragment) {
        const cancelled = new Set<RunId>()
        while (true) {
          const found = yield* database.inProject(projectId, unwanted(where))
          if (found.length === 0) return cancelled.size
          for (const run of found) {
            yield* cancel(projectId, run)
            cancelled.add(run.id)
          }
        }
      })

      const cancelBelow = Effect.fn("Descendants.cancelBelow")((projectId: ProjectId, runId: RunId) =>
        cancelWhile(
          projectId,
          sql`child.id in (
            with recursive below(id) as (
              select id from kb.agent_runs where parent_run_id = ${runId}
              union all select lower.id from below join kb.agent_runs lower on lower.parent_run_id = below.id
            ) select id from below)`
        )
      )

      /** Their deciders will say that the time is up, and refuse the calls that wait. */
      const queueOverdue = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.agent_runs set status = 'queued', pause_reason = null
          where project_id = ${projectId} and status = 'paused' and pause_reason = 'subAgents' and deadline_at < now() returning id`
        if (rows.length > 0) yield* sql.afterCommit(wakeUps.signal("runs"))
        return rows.length
      }).pipe(orDie)

      const follow = Effect.fnUntraced(function* (projectId: ProjectId) {
        const overdue = yield* database.inProject(projectId, queueOverdue)
        const timedOut = yield* endings.timeOut(projectId)
        return overdue + timedOut + (yield* cancelWhile(projectId, sql`true`))
      })

      const round = Effect.gen(function* () {
        const due = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_due_waits() as project_id`
        )
        let followed = 0
        for (const { projectId } of due) followed += yield* share("Waits", projectId, follow(projectId))
        if (followed > 0)
          yield* Effect.logInfo(`${followed} runs had used their time, or were wanted by no run above them`)
        return false
      })

      const cancelResting = Effect.gen(function* () {
        const found = yield* orDie(
          sql<{
            projectId: ProjectId
          }>`select project_id from kb.projects_with_unwanted_rests() as project_id`
        )
        const counts = yield* Effect.forEach(found, ({ projectId }) =>
          share("Unwanted runs", projectId, cancelWhile(projectId, sql`true`))
        )
        return counts.reduce((sum, count) => sum + count, 0)
      })

      return Descendants.of({
        cancelBelow,
        cancelResting,
        run: drive("Waits", "waits", untilWoken, round).pipe(Effect.provideService(WakeUps, wakeUps))
      })
    })
  )
}

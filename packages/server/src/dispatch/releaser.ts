/**
 * Gives waiting work its runs when its time has come, project by project.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Entries wait in rows, not here: a releaser that dies loses nothing, and two of
 * them are separated by the agents' locks. It is woken when a run ends, when
 * work begins to wait and when some is overdue, and comes back when the next
 * instant is due. Each project has one bounded turn in a round.
 */
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { Database, keepingPlans, orDie } from "../database/database.ts"
import { dispatchLimits } from "../limits.ts"
import { drive, share, WakeUps } from "../outbox/wake-ups.ts"
import { WaitingEntries } from "../run/waiting-entries.ts"
import { makeReleases } from "./releases.ts"
import { allowanceOf, mayMove, standingsOf } from "./standing.ts"

/** A project with waiting work, and how long until the first of it is due. */
interface Waiting {
  readonly projectId: ProjectId
  readonly inMs: number
}

export class Releaser extends Context.Service<
  Releaser,
  {
    /** Releases for ever. */
    readonly run: Effect.Effect<never>
    /** One turn of each project in which something is due; true when anything moved. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Releaser") {
  static readonly layer = Layer.effect(
    Releaser,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const waiting = yield* WaitingEntries
      const wakeUps = yield* WakeUps
      const { releaseDue } = yield* makeReleases
      /** The agent at which a project's next turn goes on, when one turn was too short for all. */
      const nextAgents = new Map<ProjectId, AgentId>()
      /** Until the next instant at which something is due; undefined where nothing waits for one. */
      let pauseMs: number | undefined

      const projects = orDie(sql<Waiting>`
        select project_id, (extract(epoch from due_at - clock_timestamp()) * 1000)::float8 as in_ms
        from kb.projects_with_waiting_entries()`)

      /** Those of the agents that could begin a run, must end what waits or have not said why it waits; asked before their rows are held. */
      const able = Effect.fnUntraced(function* (agentIds: ReadonlyArray<AgentId>) {
        const standings = yield* Effect.provideService(standingsOf(agentIds), SqlClient.SqlClient, sql)
        return standings
          .filter((standing) => {
            const { runs, opensAtMs } = allowanceOf(standing)
            if (runs === 0 && opensAtMs !== null) comeBackIn(opensAtMs - standing.now.getTime())
            return !standing.isActive || mayMove(standing)
          })
          .map(({ agentId }) => agentId)
      })

      const comeBackIn = (ms: number): void => {
        pauseMs = Math.min(
          pauseMs ?? Number.POSITIVE_INFINITY,
          Math.max(dispatchLimits.releasePauseMinMs, Math.ceil(ms))
        )
      }

      const turn = Effect.fnUntraced(function* (projectId: ProjectId) {
        const due = yield* waiting.dueAgents(nextAgents.get(projectId), dispatchLimits.releaseAgents)
        const last = due.at(-1)
        if (last === undefined || due.length < dispatchLimits.releaseAgents) nextAgents.delete(projectId)
        else nextAgents.set(projectId, last)
        const moved = yield* releaseDue(yield* able(due))
        yield* CrashPoint.hit("release.beforeCommit")
        return moved
      })

      const round = Effect.gen(function* () {
        pauseMs = undefined
        const all = yield* projects
        // Where nothing is due no turn goes on from there; a round that waited for one would be followed by the next at once, for ever.
        for (const projectId of nextAgents.keys())
          if (!all.some((one) => one.projectId === projectId && one.inMs <= 0)) nextAgents.delete(projectId)
        let moved = 0
        for (const { projectId, inMs } of all) {
          if (inMs > 0) comeBackIn(inMs)
          else
            moved += yield* share(
              "Releaser",
              projectId,
              keepingPlans(database.inProject(projectId, turn(projectId)))
            )
        }
        if (moved > 0) yield* CrashPoint.hit("release.afterCommit")
        return moved > 0 || nextAgents.size > 0
      }).pipe(Effect.withSpan("Releaser.round"))

      return Releaser.of({
        run: drive("Releaser", "releases", () => pauseMs, round).pipe(
          Effect.provideService(WakeUps, wakeUps)
        ),
        round
      })
    })
  )
}

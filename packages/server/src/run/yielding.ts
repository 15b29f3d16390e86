/**
 * How an attempt gives up a run that a kill switch kept it from writing to.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A switch that is turned off again before its runs have followed it leaves them
 * as they were, and an attempt that met it is over: the run would be held by
 * nobody until its lease lapses, and be taken for dead. So the attempt lets it
 * follow by itself. A run that somebody else has is left alone.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { makeHolding } from "./holding.ts"
import { announceClaim, isStopped } from "./kill-switches.ts"

export const makeYielding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const wakeUps = yield* WakeUps
  const { held } = yield* makeHolding

  /** The two steps of `kb.follow_kill_switches`, for one run. */
  const yieldToSwitch = Effect.fn("Runs.yieldToSwitch")(function* (run: ClaimedRun) {
    // Announced as a claim is: a switch that is turned off meanwhile finds the run at rest, or it is off here.
    const [, rested] = yield* database.together(
      announceClaim(sql),
      sql`
        update kb.agent_runs
        set status = 'paused', pause_reason = 'killSwitch', attempt_token = null, attempt = attempt - 1, lease_expires_at = null,
          time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
        where ${held(run)} returning id`
    )
    if (rested.length === 0) return
    yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${run.id} and status = 'paused' and pause_reason = 'killSwitch' and not ${isStopped(sql)}`
    yield* sql.afterCommit(wakeUps.signal(`run:${run.id}`))
  }, orDie)

  return { yieldToSwitch }
})

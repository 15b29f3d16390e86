/**
 * Ends the processing entries of runs, and lets go on what waited for them.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * An entry that waits for the end of a run is parked, and nobody looks at it
 * until this lets it go: in the transaction that ends the run, so nothing is
 * lost with a wake-up. Whoever parks an entry locks the live entry that it parks
 * it behind (`WaitingEntries.busy`); so either this sees the parked entry, or the
 * other sees that the run has ended. A run that another spawned reports to it here,
 * in the same transaction, however it came to rest.
 */
import type { AgentId, EntryId, ProjectId, RunId } from "@tropism/domain/ids"
import type { RunFailure } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { makeNextAttempts } from "./next-attempts.ts"
import { makeReporting } from "./reporting.ts"

/** A run that has come to rest. */
export interface RestingRun {
  readonly id: RunId
  readonly parentRunId: RunId | null
}

/** How entries end. */
export interface Ending {
  readonly status: "completed" | "failed" | "abandoned"
  readonly message: string | null
  /** Why, as one word; absent where nothing failed. */
  readonly failure?: RunFailure
  readonly reason?: string
  /** No policy tries it again. */
  readonly isFinal?: true
  /** A person wanted it so: nobody has to look at it, so it is no dead letter. */
  readonly isWanted?: boolean
}

export const makeSettling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
  const { openNextAttempts } = yield* makeNextAttempts
  const { report } = yield* makeReporting

  /** Ends the entries that a condition names, and answers how many there were. */
  const settle = Effect.fnUntraced(function* (which: Statement.Fragment, ending: Ending) {
    const { projectId } = yield* ProjectTransaction
    const isDead = ending.status !== "completed" && ending.isWanted !== true
    const ended = yield* sql<Line & { readonly id: EntryId }>`
      update kb.agent_processing_log set status = ${ending.status}, completed_at = now(), error_message = ${ending.message}, failure_reason = ${ending.failure ?? null},
        reason = coalesce(${ending.reason ?? null}, reason), dead_lettered_at = case when ${isDead}::boolean then now() end
      where id = any(array(
        select id from kb.agent_processing_log entry where entry.project_id = ${projectId} and ${which} order by id for no key update))
      returning id, agent_id, graph_object_id`
    if (ended.length > 0 && ending.status !== "completed" && ending.isFinal !== true)
      yield* openNextAttempts(ended.map(({ id }) => id))
    if (ended.length > 0 && (yield* letGo(ended))) yield* sql.afterCommit(wakeUps.signal("releases"))
    return ended.length
  })

  /** Lets the first parked entry of each line go on; true when an agent of them has anything waiting. */
  const letGo = Effect.fnUntraced(function* (lines: ReadonlyArray<Line>) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* freeingLines(
      projectId,
      sql`select distinct line."agentId" as agent_id, line."graphObjectId" as graph_object_id
        from jsonb_to_recordset(${JSON.stringify(lines)}::text::jsonb) as line("agentId" uuid, "graphObjectId" uuid)`
    )
    return row?.hasWaiting === true
  })

  /** The same for the lines of runs whose entries have ended in the statement before. */
  const freeing = (projectId: ProjectId, ids: ReadonlyArray<RunId>) =>
    freeingLines(
      projectId,
      sql`select distinct agent_id, graph_object_id from kb.agent_processing_log
        where run_id = any(${ids}::uuid[]) and status not in ('pending', 'processing')`
    )

  const freeingLines = (projectId: ProjectId, lines: Statement.Fragment) =>
    sql<{ hasWaiting: boolean }>`
      with line as (${lines}), freed as (
        update kb.agent_processing_log entry set parked = false
        where entry.id = any(array(
          select first.id from line cross join lateral (
            select next.id, next.parked from kb.agent_processing_log next
            where next.agent_id = line.agent_id and next.graph_object_id = line.graph_object_id
              and next.status = 'pending' and next.run_id is null
            order by next.object_version, next.attempt limit 1
          ) first where first.parked order by first.id
        )) and case when entry.run_id is null then entry.status = 'pending' else false end
      )
      select exists (
        select 1 from kb.agent_processing_log entry
        where entry.project_id = ${projectId} and entry.agent_id in (select agent_id from line)
          and entry.status = 'pending' and entry.run_id is null
      ) as has_waiting`

  /** Ends what hangs on runs that have come to rest: their entries, and the calls that wait for them. */
  const settleRuns = Effect.fnUntraced(function* (runs: ReadonlyArray<RestingRun>, ending: Ending) {
    const ids = runs.map(({ id }) => id)
    yield* settle(
      sql`entry.run_id = any(${ids}::uuid[]) and entry.status in ('pending', 'processing')`,
      ending
    )
    yield* report(runs.flatMap(({ id, parentRunId }) => (parentRunId === null ? [] : [id])))
  })

  return { settle, settleRuns, letGo, freeing }
})

/** All entries of one agent and object. */
interface Line {
  readonly agentId: AgentId
  readonly graphObjectId: string
}

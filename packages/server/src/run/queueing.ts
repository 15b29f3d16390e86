/**
 * Puts runs into the queue, with the contexts that they work on.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Many runs are one statement. That at most one run is at work on a context is a
 * unique key: whoever loses that race queues nothing and need not, because the
 * run at work will see what was appended. What a tainted run hands over taints the
 * context of whoever takes it, and what is handed on in somebody's own context
 * stays theirs. That an instant of a schedule has one run is another.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import type { PauseReason, RunStatus } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import type { NewRun, SkippedRun } from "./claimed-run.ts"
import type { WaitReason } from "./outcomes.ts"

/** Of a run that somebody waits for, of what reacts, and of a backtest's; the lower comes first. A run keeps its own, and what it spawns has the same. */
const [awaited, reacting, testing] = [0, 1, 2]

const isWaitReason = (reason: PauseReason | null): reason is WaitReason =>
  reason === "question" || reason === "subAgents" || reason === "toolResult"

/** The verbs of `Runs` by which a run begins, or goes on after a rest. */
export const makeQueueing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const wakeUps = yield* WakeUps

  const queue = Effect.fn("Runs.queue")(function* (runs: ReadonlyArray<NewRun>) {
    if (runs.length === 0) return
    const { projectId } = yield* ProjectTransaction
    const rows = JSON.stringify(runs)
    const contexts = sql`
      insert into kb.contexts (project_id, name, agent_id, is_remembered, owner, tainted_by)
      select ${projectId}::uuid, row."contextName", row."agentId", row."backtestId" is null, above.owner, coalesce(row."taintedBy",
        case when above.tainted_by is not null then jsonb_build_array(jsonb_build_object('kind', 'context', 'id', above.name, 'at', 0)) end)
      from jsonb_to_recordset(${rows}::text::jsonb) as row("contextName" text, "agentId" uuid, spawn jsonb, "taintedBy" jsonb, "backtestId" uuid)
      left join lateral (
        select context.name, context.owner, context.tainted_by from kb.agent_runs parent
        join kb.contexts context on context.project_id = ${projectId} and context.name = parent.context_name
        where parent.project_id = ${projectId} and parent.id = (row.spawn ->> 'parentRunId')::uuid limit 1
      ) above on true
      on conflict do nothing`
    yield* database.together(contexts, insert(projectId, rows, onePerInstant))
    yield* sql.afterCommit(wakeUps.signal("runs"))
  }, orDie)

  const onePerInstant = sql`(agent_id, due_at) where due_at is not null`
  const onePerContext = sql`(project_id, context_name) where status in ('queued', 'running', 'paused')`

  const insert = (projectId: ProjectId, rows: string, unique: Statement.Fragment) =>
    sql`
      insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, user_id, due_at, context_name, root_event_id, depth,
        parent_run_id, spawned_by, ancestors, spawn_depth, limits, priority, backtest_id)
      select row.id, ${projectId}::uuid, row."agentId", row."agentVersion", 'queued', row.trigger, row."userId", row."dueAt", row."contextName",
        row."rootEventId", row.depth, spawn."parentRunId", spawn."spawnedBy", coalesce(spawn.ancestors, '{}'),
        coalesce(cardinality(spawn.ancestors), 0), spawn.limits,
        coalesce((select parent.priority from kb.agent_runs parent where parent.id = spawn."parentRunId"),
          case when row."backtestId" is not null then ${testing} when row.trigger ->> 'type' in ('manual', 'context') then ${awaited}
            else ${reacting} end), row."backtestId"
      from jsonb_to_recordset(${rows}::text::jsonb) as row(id uuid, "agentId" uuid, "agentVersion" int, trigger jsonb, "userId" text,
        "dueAt" timestamptz, "contextName" text, "rootEventId" uuid, depth int, spawn jsonb, "backtestId" uuid),
        jsonb_to_record(coalesce(row.spawn, '{}')) as spawn("parentRunId" uuid, "spawnedBy" uuid, ancestors uuid[], limits jsonb)
      on conflict ${unique} do nothing returning id`

  const skip = Effect.fn("Runs.skip")(function* (runs: ReadonlyArray<SkippedRun>) {
    if (runs.length === 0) return
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, due_at, context_name, depth, summary, completed_at)
      select row.id, ${projectId}::uuid, row."agentId", row."agentVersion", 'skipped', row.trigger, row."dueAt", 'run-' || row.id, 0, row.reason, now()
      from jsonb_to_recordset(${JSON.stringify(runs)}::text::jsonb) as row(id uuid, "agentId" uuid, "agentVersion" int, trigger jsonb,
        "dueAt" timestamptz, reason text)
      on conflict (agent_id, due_at) where due_at is not null do nothing`
  }, orDie)

  const queueOn = Effect.fn("Runs.queueOn")(function* (run: NewRun) {
    const { projectId } = yield* ProjectTransaction
    const inserted = yield* insert(projectId, JSON.stringify([run]), onePerContext)
    if (inserted.length > 0) yield* sql.afterCommit(wakeUps.signal("runs"))
    return inserted.length > 0
  }, orDie)

  const wake = Effect.fn("Runs.wake")(function* (id: RunId, reason: PauseReason) {
    const { projectId } = yield* ProjectTransaction
    const woken = yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${id} and project_id = ${projectId} and status = 'paused' and pause_reason = ${reason} returning id`
    if (woken.length === 0) return false
    yield* sql.afterCommit(wakeUps.signal("runs"))
    yield* sql.afterCommit(wakeUps.signal(`run:${id}`))
    return true
  }, orDie)

  const holdResting = Effect.fn("Runs.holdResting")(function* (name: ContextName) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ id: RunId; status: RunStatus; pauseReason: PauseReason | null }>`
      select id, status, pause_reason from kb.agent_runs
      where project_id = ${projectId} and context_name = ${name} and status in ('queued', 'running', 'paused') for no key update`
    // What a limit has stopped a person resumes, and what a kill switch has stopped goes on when that is off.
    return row?.status === "paused" && isWaitReason(row.pauseReason)
      ? { id: row.id, reason: row.pauseReason }
      : undefined
  }, orDie)

  return { queue, queueOn, skip, wake, holdResting }
})

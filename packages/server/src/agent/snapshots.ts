/**
 * Snapshots of contexts: what a log folds to up to an event, so that opening it costs what is new.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * The log stays the truth: a snapshot that is lost, old, or of another version of
 * the fold is passed over and the log is read from its beginning. A fork begins
 * with one of the logs that it shares, as far as it shares them. The newest of a
 * context is kept and no other.
 */
import type { ContextName } from "@tropism/domain/context-event"
import { decodeSnapshot, encodeSnapshot, foldVersion } from "@tropism/domain/context-snapshot"
import { emptyContext, type ReducedContext } from "@tropism/domain/context"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { agentLimits } from "../limits.ts"
import { ProjectTransaction } from "../database/database.ts"

/** Where the fold of a log begins. */
export interface Beginning {
  readonly context: ReducedContext
  /** The number of the last event in it; 0 without a snapshot. */
  readonly number: number
}

export type Snapshots = Effect.Success<typeof makeSnapshots>

export const makeSnapshots = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The newest snapshot of a log no later than an event, or the empty context. */
  const beginningOf = Effect.fn("Contexts.beginningOf")(function* (name: ContextName, last: number) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ number: number; state: unknown }>`
      with recursive line as (
        select name, forked_from, forked_at, last_event_number as until from kb.contexts
        where project_id = ${projectId} and name = ${name} and last_event_number > ${agentLimits.snapshotEvents}
        union all
        select origin.name, origin.forked_from, origin.forked_at, least(line.forked_at, line.until)
        from line join kb.contexts origin on origin.project_id = ${projectId} and origin.name = line.forked_from
      )
      select snapshot.number, snapshot.state
      from line join kb.context_snapshots snapshot on snapshot.project_id = ${projectId} and snapshot.context_name = line.name
        and snapshot.version = ${foldVersion} and snapshot.number <= least(line.until, ${last}::int)
      order by snapshot.number desc limit 1`
    const beginning: Beginning = { context: emptyContext, number: 0 }
    if (!row) return beginning
    return Option.match(decodeSnapshot(row.state), {
      onNone: () => beginning,
      onSome: (context): Beginning => ({ context, number: row.number })
    })
  })

  /**
   * The statement that keeps a state as the newest snapshot of its log.
   *
   * **Details** A state is a function of the log, so it does not matter who keeps it, or how often; a later one is never
   * replaced by an earlier one. What earlier versions kept goes.
   */
  const keeping = (projectId: ProjectId, name: ContextName, context: ReducedContext) =>
    sql<{ number: number }>`
      with outdated as (
        delete from kb.context_snapshots where project_id = ${projectId} and context_name = ${name} and version < ${foldVersion}
      )
      insert into kb.context_snapshots as snapshot (project_id, context_name, version, number, state)
      values (${projectId}, ${name}, ${foldVersion}, ${context.nextEventNumber - 1}, ${JSON.stringify(encodeSnapshot(context))}::text::jsonb)
      on conflict (project_id, context_name, version) do update
        set number = excluded.number, state = excluded.state, created_at = excluded.created_at
        where excluded.number > snapshot.number
      returning number`

  return { beginningOf, keeping }
})

/** Whether so much lies behind the last snapshot that another is worth its keep. */
export const isSnapshotDue = (context: ReducedContext, keptNumber: number): boolean => {
  const behind = context.nextEventNumber - 1 - keptNumber
  // A large window is kept less often: what is written for it follows what is new in it.
  return (
    behind >= Math.max(agentLimits.snapshotEvents, context.messages.length) &&
    context.windowTokens <= agentLimits.snapshotMaxTokens
  )
}

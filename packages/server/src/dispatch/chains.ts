/**
 * Counts how many runs each chain has led to, and stops at the cap.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * The count is a row under lock: it survives restarts, approvals and sub-agents,
 * and two dispatchers cannot both take the last place.
 */
import type { GraphEventId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { dispatchLimits } from "../limits.ts"

/** Takes places for runs of chains, in order; answers for each whether there was one. */
export const takePlaces = Effect.fn("takePlaces")(function* (roots: ReadonlyArray<GraphEventId>) {
  if (roots.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const distinct = [...new Set(roots)].toSorted()
  yield* sql`
    insert into kb.budgets (project_id, scope, scope_id) select ${projectId}::uuid, 'chain', root from unnest(${distinct}::uuid[]) root
    on conflict do nothing`
  const rows = yield* sql<{ scopeId: GraphEventId; runs: number }>`
    select scope_id, runs from kb.budgets where project_id = ${projectId} and scope = 'chain' and scope_id = any(${distinct}::uuid[])
    order by scope_id for update`
  const used = new Map(rows.map((row) => [row.scopeId, row.runs]))
  const granted = roots.map((root) => {
    const runs = used.get(root) ?? 0
    if (runs >= dispatchLimits.chainMaxRuns) return false
    used.set(root, runs + 1)
    return true
  })
  yield* sql`
    update kb.budgets set runs = row.runs
    from jsonb_to_recordset(${JSON.stringify([...used].map(([id, runs]) => ({ id, runs })))}::text::jsonb) as row(id uuid, runs int)
    where project_id = ${projectId} and scope = 'chain' and scope_id = row.id`
  return granted
}, orDie)

/**
 * Counts how many runs each chain has led to, and stops at its caps.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The count is a row under lock: it survives restarts, approvals and retries,
 * and two who begin runs cannot both take the last place. What a chain has spent on
 * models stands in the same row; `spending.ts` adds to it.
 */
import { type ChainUse, findReachedCap, nothingUsed, type ReachedCap } from "@tropism/domain/chain"
import type { GraphEventId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { type UseRow, toUse } from "./spending.ts"

/** Takes places for runs in the chains of their roots, in order; answers for each run the caps that refused it, by root. */
export const takePlaces = Effect.fn("takePlaces")(function* (
  runs: ReadonlyArray<ReadonlyArray<GraphEventId>>
) {
  if (runs.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const { chainLimits } = yield* (yield* Projects).settings
  const distinct = [...new Set(runs.flat())].toSorted()
  yield* sql`
    insert into kb.budgets (project_id, scope, scope_id) select ${projectId}::uuid, 'chain', root from unnest(${distinct}::uuid[]) root
    on conflict do nothing`
  const rows = yield* sql<UseRow & { readonly scopeId: GraphEventId }>`
    select scope_id, runs, input_tokens, output_tokens, cost_micros from kb.budgets
    where project_id = ${projectId} and scope = 'chain' and scope_id = any(${distinct}::uuid[])
    order by scope_id for update`
  const used = new Map<GraphEventId, ChainUse>(rows.map((row) => [row.scopeId, toUse(row)]))
  const caps = runs.map((roots) => {
    const reached = new Map<GraphEventId, ReachedCap>()
    for (const root of new Set(roots)) {
      const use = used.get(root) ?? nothingUsed
      const cap = findReachedCap(use, chainLimits)
      if (cap === undefined) used.set(root, { ...use, runs: use.runs + 1 })
      else reached.set(root, cap)
    }
    return reached
  })
  const counts = JSON.stringify([...used].map(([id, { runs }]) => ({ id, runs })))
  yield* sql`
    update kb.budgets set runs = row.runs
    from jsonb_to_recordset(${counts}::text::jsonb) as row(id uuid, runs int)
    where project_id = ${projectId} and scope = 'chain' and scope_id = row.id`
  return caps
}, orDie)

/**
 * Counts the runs of each chain and enforces its caps.
 *
 * The count is a locked row: it survives restarts, approvals and retries, and two transactions cannot both take the last place. The same
 * row holds the chain's model usage, which `budgets.ts` adds to.
 */
import {
  type ChainLimits,
  type ChainUse,
  findReachedCap,
  nothingUsed,
  type ReachedCap
} from "@tropism/domain/chain"
import type { GraphEventId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../tenancy/projects.ts"
import { type UseRow, toUse } from "./budgets.ts"

/** Takes places for runs in the chains of their roots, in order; returns for each run the caps that refused it, by root. */
export const takePlaces = Effect.fn("takePlaces")(function* (
  runs: ReadonlyArray<ReadonlyArray<GraphEventId>>
) {
  if (runs.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const { chainLimits } = yield* (yield* Projects).settings
  // Most chains begin here: the transaction that inserts a chain's row holds it, and its usage is zero.
  const first = judge(runs, new Map(), chainLimits)
  const made = yield* sql<{ readonly scopeId: GraphEventId }>`
    insert into kb.budgets (project_id, scope, scope_id, runs)
    select ${projectId}::uuid, 'chain', row.id, row.runs from jsonb_to_recordset(${countsOf(first.used)}::text::jsonb) as row(id uuid, runs int)
    order by row.id on conflict do nothing returning scope_id`
  const begun = new Set(made.map(({ scopeId }) => scopeId))
  const known = [...first.used.keys()].filter((root) => !begun.has(root))
  if (known.length === 0) return first.caps
  const rows = yield* sql<UseRow & { readonly scopeId: GraphEventId }>`
    select scope_id, runs, input_tokens, output_tokens, cost_micros from kb.budgets
    where project_id = ${projectId} and scope = 'chain' and scope_id = any(${known}::uuid[])
    order by scope_id for update`
  const { caps, used } = judge(runs, new Map(rows.map((row) => [row.scopeId, toUse(row)])), chainLimits)
  yield* sql`
    update kb.budgets set runs = row.runs
    from jsonb_to_recordset(${countsOf(used, known)}::text::jsonb) as row(id uuid, runs int)
    where project_id = ${projectId} and scope = 'chain' and scope_id = row.id`
  return caps
}, orDie)

type Used = ReadonlyMap<GraphEventId, ChainUse>

/** Assigns places to the runs in order, in the chain of each of their roots, on top of the usage so far. */
const judge = (runs: ReadonlyArray<ReadonlyArray<GraphEventId>>, before: Used, limits: ChainLimits) => {
  const used = new Map(before)
  const caps = runs.map((roots) => {
    const reached = new Map<GraphEventId, ReachedCap>()
    for (const root of new Set(roots)) {
      const use = used.get(root) ?? nothingUsed
      const cap = findReachedCap(use, limits)
      used.set(root, cap === undefined ? { ...use, runs: use.runs + 1 } : use)
      if (cap !== undefined) reached.set(root, cap)
    }
    return reached
  })
  return { caps, used }
}

const countsOf = (used: Used, roots: Iterable<GraphEventId> = used.keys()): string =>
  JSON.stringify([...roots].map((id) => ({ id, runs: used.get(id)?.runs ?? 0 })))

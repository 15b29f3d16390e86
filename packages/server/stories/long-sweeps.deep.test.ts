/**
 * Requirement: one sweep removes all that is old, however much that is and whatever of it is still needed.
 *
 * The tables are filled by the owner of the database, with more than one batch takes; no loop is at work.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { BroughtContexts } from "../src/chat/conversations.ts"
import { chatLimits } from "../src/chat/limits.ts"
import { Sweeps } from "../src/cluster/sweeps.ts"
import { Database } from "../src/database/database.ts"
import { keyLimits } from "../src/tenancy/idempotency-keys.ts"
import { tokenLimits } from "../src/http/limits.ts"
import { filledBy } from "../testing/filled-database.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")

/** The first batches have nothing but what is needed. */
const needed = 2 * chatLimits.forgetBatchContexts
const forgotten = chatLimits.forgetBatchContexts + 1
const keys = 2 * keyLimits.forgetBatchKeys + 1
const tokens = 2 * tokenLimits.forgetBatchTokens + 1

const contexts = `generate_series(1, ${needed + forgotten}) n`

const filling = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled)
    values ('${project}', '${project}', 'clerk', 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true)`,
  `insert into kb.contexts (project_id, name, agent_id) select '${project}', 'brought-' || n, '${project}' from ${contexts}`,
  `insert into kb.contexts (project_id, name, agent_id, forked_from, forked_at)
    select '${project}', 'fork-' || n, '${project}', 'brought-' || n, 0 from ${contexts} where n <= ${needed}`,
  `insert into kb.brought_contexts (project_id, context_name, due_at)
    select '${project}', 'brought-' || n, now() - interval '1 day' + n * interval '1 second' from ${contexts}`,
  `insert into kb.idempotency_keys (project_id, user_id, token, route, key, digest, outcome, created_at)
    select '${project}', 'ada', '', '', n, '', '{}', now() - interval '31 days' from generate_series(1, ${keys}) n`,
  `insert into kb.api_tokens (id, hash, user_id, role, expires_at)
    select gen_random_uuid(), n, 'ada', 'viewer', now() - interval '31 days' from generate_series(1, ${tokens}) n`,
  "analyze"
]

layer(filledBy(filling))((it) => {
  describe("One sweep removes all that is old", () => {
    it.effect("of contexts, though whole batches of them are needed: those wait for another day", () =>
      Effect.gen(function* () {
        const { forgetContexts } = yield* Sweeps
        expect(yield* forgetContexts).toBe(forgotten)
        const sql = yield* SqlClient.SqlClient
        const left = yield* (yield* Database).inProject(
          project,
          Effect.orDie(
            sql<{ name: string; isDue: boolean }>`
              select forked_from as name, due_at < now() as is_due from kb.brought_contexts
              join kb.contexts on forked_from = context_name`
          )
        )
        expect([left.length, left.some(({ isDue }) => isDue)]).toEqual([needed, false])
        // What is needed keeps no sweep going.
        expect(yield* (yield* BroughtContexts).forget).toEqual({ count: 0, hasMore: false })
      })
    )

    it.effect("of keys of requests", () =>
      Effect.gen(function* () {
        const { forgetKeys } = yield* Sweeps
        expect(yield* forgetKeys).toBe(keys)
      })
    )

    it.effect("of tokens", () =>
      Effect.gen(function* () {
        const { forgetTokens } = yield* Sweeps
        expect(yield* forgetTokens).toBe(tokens)
      })
    )
  })
})

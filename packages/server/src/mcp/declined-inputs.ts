/**
 * What a person would not answer about a run: each is asked once.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Declining decides nothing. The question or suggestion goes on waiting for
 * whoever else may decide; only this person's clients are not told of it again.
 */
import type { RunId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class DeclinedInputs extends Context.Service<
  DeclinedInputs,
  {
    /** The keys that a person has declined of a run. */
    readonly of: (runId: RunId, by: UserId) => InProject<ReadonlySet<string>>
    /** Keeps that a person would not answer. */
    readonly decline: (runId: RunId, by: UserId, key: string) => InProject<void>
  }
>()("@tropism/server/mcp/DeclinedInputs") {
  static readonly layer = Layer.effect(
    DeclinedInputs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const of = Effect.fn("DeclinedInputs.of")(function* (runId: RunId, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ readonly key: string }>`
          select key from kb.declined_inputs where project_id = ${projectId} and run_id = ${runId} and user_id = ${by}`
        return new Set(rows.map(({ key }) => key))
      }, orDie)

      const decline = Effect.fn("DeclinedInputs.decline")(function* (runId: RunId, by: UserId, key: string) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.declined_inputs (project_id, run_id, user_id, key) values (${projectId}, ${runId}, ${by}, ${key})
          on conflict do nothing`
      }, orDie)

      return DeclinedInputs.of({ of, decline })
    })
  )
}

/**
 * Contexts of clients that bring all that was said with each request: how long they are kept.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Such a client does not come back to most of them, so each has a day on which
 * what was said in it is forgotten, later each time that somebody speaks there.
 * Whoever is about to write holds its row, and the sweep passes over rows that are
 * held: nothing is written into a log that is being forgotten.
 */
import type { ContextName } from "@tropism/domain/context-event"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { chatLimits } from "./chat-limits.ts"

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class BroughtContexts extends Context.Service<
  BroughtContexts,
  {
    /** Lets a context be forgotten when nobody has spoken in it for long. */
    readonly keep: (name: ContextName) => InProject<void>
    /** Keeps a context from being forgotten in this transaction, and for long where it is spoken in; false when it is forgotten. */
    readonly hold: (name: ContextName, isSpokenIn: boolean) => InProject<boolean>
    /** Forgets, in a transaction of its own, what was said in some that nobody needs any more, of all projects; answers how many, and whether there may be more. */
    readonly forget: Effect.Effect<{ readonly count: number; readonly hasMore: boolean }>
  }
>()("@tropism/server/chat/BroughtContexts") {
  static readonly layer = Layer.effect(
    BroughtContexts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inSeconds = (ms: number) => sql`make_interval(secs => ${ms / 1_000}::float8)`

      const keep = Effect.fn("BroughtContexts.keep")(function* (name: ContextName) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.brought_contexts (project_id, context_name, due_at)
          values (${projectId}, ${name}, now() + ${inSeconds(chatLimits.broughtKeepMs)})`
      }, orDie)

      const hold = Effect.fn("BroughtContexts.hold")(function* (name: ContextName, isSpokenIn: boolean) {
        const { projectId } = yield* ProjectTransaction
        const { broughtKeepMs, broughtWaitMs } = chatLimits
        yield* sql`
          update kb.brought_contexts
          set due_at = greatest(due_at, now() + ${inSeconds(isSpokenIn ? broughtKeepMs : broughtWaitMs)})
          where project_id = ${projectId} and context_name = ${name}`
        // A statement of its own: the sweep that this one waited for has ended, and what it did is seen.
        const rows = yield* sql`
          select 1 from kb.contexts where project_id = ${projectId} and name = ${name} and forgotten_at is null`
        return rows.length > 0
      }, orDie)

      // Some that were due may all be needed and wait for another day: the count does not tell. Only a transaction that found none has no id.
      const forget = sql<{ readonly count: number; readonly hasMore: boolean }>`
        with swept as materialized (
          select kb.forget_brought_contexts(${chatLimits.broughtWaitMs / 1_000}::float8, ${chatLimits.forgetBatchContexts}::int) as count
        ) select count, pg_current_xact_id_if_assigned() is not null as has_more from swept`.pipe(
        Effect.flatMap(onlyRow),
        orDie
      )

      return BroughtContexts.of({ keep, hold, forget })
    })
  )
}

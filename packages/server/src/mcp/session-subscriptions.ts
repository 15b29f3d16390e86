/**
 * What the sessions of the revision 2025-11-25 want to be told of.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A session subscribes by one request and hears over another, which may lie at
 * another server: so a subscription is a row. It goes with its session, or a day
 * after somebody has listened last.
 */
import type { UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { digestOf } from "../task/digest.ts"
import { mcpLimits } from "./mcp-limits.ts"

/** A resource, and where its source ended when it was subscribed to. */
export interface SessionSubscription {
  readonly uri: string
  readonly place: number
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class SessionSubscriptions extends Context.Service<
  SessionSubscriptions,
  {
    /** Keeps a subscription; false when the user has as many as he may. */
    readonly keep: (
      userId: UserId,
      sessionId: string,
      subscription: SessionSubscription
    ) => InProject<boolean>
    readonly remove: (sessionId: string, uri: string) => InProject<void>
    /** Ends all of a session that has ended. */
    readonly forget: (sessionId: string) => InProject<void>
    /** What a session that listens now is to be told of, and keeps from going. */
    readonly of: (sessionId: string) => InProject<ReadonlyArray<SessionSubscription>>
  }
>()("@tropism/server/mcp/SessionSubscriptions") {
  static readonly layer = Layer.effect(
    SessionSubscriptions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const wakeUps = yield* WakeUps
      const end = sql`now() + make_interval(secs => ${mcpLimits.subscriptionKeptMs / 1_000}::float8)`
      const changed = (session: string) => sql.afterCommit(wakeUps.signal(`subscribed:${session}`))

      const keep = Effect.fn("SessionSubscriptions.keep")(function* (
        userId: UserId,
        sessionId: string,
        { place, uri }: SessionSubscription
      ) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        // One after another, so that two requests do not both take the last place.
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`resource subscriptions ${projectId} ${userId}`}, 0))`
        yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and user_id = ${userId} and expires_at <= now()`
        const { count } = yield* Effect.flatMap(
          sql<{ readonly count: number }>`
            select count(*)::int as count from kb.resource_subscriptions
            where project_id = ${projectId} and user_id = ${userId} and (session, uri) <> (${session}, ${uri})`,
          onlyRow
        )
        if (count >= mcpLimits.subscriptionsPerUser) return false
        yield* sql`
          insert into kb.resource_subscriptions (project_id, session, uri, user_id, place, expires_at)
          values (${projectId}, ${session}, ${uri}, ${userId}, ${place}, ${end})
          on conflict (project_id, session, uri) do update set place = excluded.place, expires_at = excluded.expires_at`
        yield* changed(session)
        return true
      }, orDie)

      const remove = Effect.fn("SessionSubscriptions.remove")(function* (sessionId: string, uri: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and session = ${session} and uri = ${uri}`
        yield* changed(session)
      }, orDie)

      const forget = Effect.fn("SessionSubscriptions.forget")(function* (sessionId: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        const rows = yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and session = ${session} returning 1`
        if (rows.length > 0) yield* changed(session)
      }, orDie)

      const of = Effect.fn("SessionSubscriptions.of")(function* (sessionId: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        const rows = yield* sql<{ readonly uri: string; readonly place: bigint; readonly isOld: boolean }>`
          select uri, place, expires_at < now() + make_interval(secs => ${mcpLimits.subscriptionKeptMs / 2_000}::float8) as is_old
          from kb.resource_subscriptions
          where project_id = ${projectId} and session = ${session} and expires_at > now() order by uri`
        if (rows.some(({ isOld }) => isOld))
          yield* sql`
            update kb.resource_subscriptions set expires_at = ${end} where project_id = ${projectId} and session = ${session}`
        return rows.map(({ place, uri }) => ({ uri, place: Number(place) }))
      }, orDie)

      return SessionSubscriptions.of({ keep, remove, forget, of })
    })
  )
}

/**
 * Requirement: a server for which there is nothing to do asks its database for next to nothing (issue 10).
 *
 * PostgreSQL counts the transactions, for all servers of a database together. The time is the database's, so that a
 * machine on which everything takes long changes no rate.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { dispatchLimits } from "../src/limits.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, startServer, storyKeys } from "../testing/platform.ts"
import { make, watcher } from "../testing/story-words.ts"

/** Transactions that have ended so far, and when. */
const countNow = (access: PostgresAccess) =>
  Effect.map(
    ask(
      access,
      `select xact_commit + xact_rollback, extract(epoch from clock_timestamp()) from pg_stat_database
       where datname = current_database()`
    ),
    ([row]) => ({ count: Number(row?.[0]), seconds: Number(row?.[1]) })
  )

const windowSeconds = 10

/** Transactions in a second of the database's time, over a while; these looks are a few of them. */
const rate = Effect.fnUntraced(function* (access: PostgresAccess) {
  const from = yield* countNow(access)
  const until = yield* eventually(
    countNow(access),
    ({ seconds }) => seconds - from.seconds >= windowSeconds,
    60_000,
    [2_500, 2_500]
  )
  return (until.count - from.count) / (until.seconds - from.seconds)
})

/** The rate once a server has come to rest: what starting it took is told by PostgreSQL some seconds later. */
const restingRate = (access: PostgresAccess, most: number) =>
  eventually(rate(access), (perSecond) => perSecond <= most, 60)

describe("Requirement: an idle server leaves its database alone", () => {
  it.live("one server by itself has at most 5 transactions a second", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      yield* startServer(access)
      const perSecond = yield* restingRate(access, 5)
      expect([perSecond > 0, perSecond <= 5]).toEqual([true, true])
    })
  )

  it.live(
    "one at which as many agents were due at once as one turn of the releaser takes has no more when they are done",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const story = yield* newProject(yield* startServer(access), access)
        const reactionConfig = { objectTypes: ["Person"], events: ["created"], debounceMs: 2_000 }
        const numbers = Array.from({ length: dispatchLimits.releaseAgents }, (_, index) => index + 1)
        yield* Effect.forEach(
          numbers,
          (number) => story.post("/agents", watcher({ name: `watcher-${number}`, reactionConfig })),
          { concurrency: 4, discard: true }
        )
        yield* make(story, "Person")
        yield* eventually(
          story.get("/runs?limit=200"),
          ({ items }) =>
            items.length === numbers.length && items.every(({ completedAt }: Json) => completedAt !== null)
        )
        expect(yield* restingRate(access, 5)).toBeGreaterThan(0)
      }),
    600_000
  )

  it.live("three servers of a cluster have at most 15 each", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      for (const address of [yield* freeAddress, yield* freeAddress, yield* freeAddress])
        yield* startServer(access, [], undefined, undefined, storyKeys, address)
      const perSecond = yield* restingRate(access, 45)
      expect([perSecond > 0, perSecond <= 45]).toEqual([true, true])
    })
  )

  it.live("one that starts asks once for all its loops, and needs no connection for each", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      yield* newProject(yield* startServer(access), access)
      const [row] = yield* ask(
        access,
        `select count(*)::int from pg_stat_activity where datname = current_database() and usename = 'tropism_server'`
      )
      // It gets five or six; on a busy machine what comes next may find them all at work. With one for each loop it would have more.
      expect(row?.[0]).toBeLessThanOrEqual(9)
    })
  )
})

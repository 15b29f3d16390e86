/**
 * A repeat that waits at another server for the first takes a connection; who goes away gives it back at once.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { beginCall } from "../testing/dropped-call.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { askAsServer } from "../testing/couriers.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"

const waiting = `select count(*)::int from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null and query ~ 'advisory_xact_lock|pg_sleep'`

describe("A repeat that waits at another server", () => {
  it.live("waits no longer when its client goes away, and the first goes on", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const [reached, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const here = yield* Effect.provideService(startServer(access), CrashPoint, {
        hit: (name) =>
          name === "graph.beforeCommit"
            ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
            : Effect.void
      })
      const there = yield* startServer(access)
      const story = yield* newProject(here, access)
      const path = `/api/projects/${story.projectId}/objects`
      const [object, key] = [{ type: "A", properties: {} }, { "idempotency-key": "k" }]
      const first = yield* Effect.forkScoped(story.send("POST", path, object, key))
      yield* Deferred.await(reached)

      const repeat = yield* beginCall(there, path, object, key)
      const waiters = Effect.map(askAsServer(access, waiting), ([row]) => Number(row?.[0]))
      yield* eventually(waiters, (count) => count === 1)
      yield* repeat.drop
      // Far sooner than the time that a repeat is let wait.
      yield* eventually(waiters, (count) => count === 0, 1_500)

      yield* Deferred.succeed(goOn, undefined)
      expect((yield* Fiber.join(first)).status).toBe(201)
      const again = yield* there.send("POST", path, object, key)
      expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"])
    }).pipe(Effect.scoped)
  )
})

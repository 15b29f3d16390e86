/**
 * Repeats that come while the first is at work wait for its end, at its server and at another, and take nothing from others.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { keyLimits } from "../src/tenancy/idempotency-keys.ts"
import { outboxLimits } from "../src/limits.ts"
import { beginCall } from "../testing/dropped-call.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { askAsServer } from "../testing/server-connections.ts"
import { asTimePasses } from "../testing/shared-server.ts"

const open = `select count(*)::int from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`

/** Two servers on one database; what the first one of them is asked to write is held until it may go on, or until PostgreSQL breaks it off. */
const heldFor = Effect.fnUntraced(function* (idleTransactionMs: number) {
  const fresh = yield* freshDatabase
  const access = {
    ...fresh,
    embedded: false,
    serverStartupParameters: {
      ...fresh.serverStartupParameters,
      idle_in_transaction_session_timeout: String(idleTransactionMs)
    }
  }
  const [reached, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const here = yield* Effect.provideService(startServer(access), CrashPoint, {
    hit: (name) =>
      name === "graph.beforeCommit"
        ? Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
        : Effect.void
  })
  const there = yield* startServer(access)
  // Where a story fails, its servers end all the same.
  yield* Effect.addFinalizer(() => Deferred.succeed(goOn, undefined))
  const story = yield* newProject(here, access)
  const path = `/api/projects/${story.projectId}/objects`
  const [object, key] = [{ type: "A", properties: {} }, { "idempotency-key": "k" }]
  const first = yield* Effect.forkScoped(here.send("POST", path, object, key))
  yield* Deferred.await(reached)
  /** One more of the same at either server, and whether others are answered meanwhile. */
  const repeat = (index: number) => (index % 2 ? here : there).send("POST", path, object, key)
  const transactions = Effect.map(askAsServer(access, open), ([row]) => Number(row?.[0]))
  return { access, first, goOn, here, key, object, path, repeat, story, there, transactions }
})

/** For as long as the story takes, however busy the machine is. */
const held = heldFor(60_000)

/** Lets the servers' time go on, a second at each look. */
const afterMs = (ms: number) => {
  let passedMs = 0
  return asTimePasses(
    1_000,
    Effect.sync(() => (passedMs += 1_000)),
    (passed) => passed >= ms
  )
}

const settled = <A>(fiber: Fiber.Fiber<A>) =>
  Effect.andThen(
    asTimePasses(
      100,
      Effect.sync(() => fiber.pollUnsafe()),
      (exit) => exit !== undefined
    ),
    Fiber.join(fiber)
  )

describe("Repeats while the first is at work", () => {
  it.effect("fifty at two servers wait as long as it takes, and are told the same of one effect", () =>
    Effect.gen(function* () {
      const { first, goOn, here, repeat, story, there, transactions } = yield* held
      const repeats = yield* Effect.forkScoped(
        Effect.all(
          Array.from({ length: 49 }, (_, index) => repeat(index)),
          { concurrency: "unbounded" }
        )
      )
      yield* afterMs(keyLimits.waitMs - 5_000)
      // More of them wait than the servers have connections, and only the first one has one.
      yield* eventually(transactions, (count) => count === 1)
      for (const doors of [here, there]) expect((yield* doors.send("GET", "/api/projects")).status).toBe(200)
      expect(repeats.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(goOn, undefined)
      const answers = [yield* Fiber.join(first), ...(yield* settled(repeats))]
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
      const again = answers.filter(({ headers }) => headers.get("idempotency-replayed") === "true")
      expect([answers.length, again.length]).toEqual([50, 49])
      expect((yield* story.get("/objects")).items).toHaveLength(1)
    }).pipe(Effect.scoped)
  )

  it.effect("are told to come back when their time is up", () =>
    Effect.gen(function* () {
      const { first, goOn, here, key, object, path, repeat, story } = yield* held
      const repeats = yield* Effect.forkScoped(
        Effect.all(
          Array.from({ length: 6 }, (_, index) => repeat(index)),
          { concurrency: "unbounded" }
        )
      )
      const refusals = yield* asTimePasses(
        5_000,
        Effect.sync(() => repeats.pollUnsafe()),
        (exit) => exit !== undefined
      ).pipe(Effect.andThen(Fiber.join(repeats)))
      for (const refusal of refusals) {
        expectProblem(refusal, 409)
        expect([refusal.body.reason, refusal.headers.get("retry-after")]).toEqual(["keyBusy", "2"])
      }
      yield* Deferred.succeed(goOn, undefined)
      expect((yield* Fiber.join(first)).status).toBe(201)
      const late = yield* here.send("POST", path, object, key)
      expect([late.status, late.headers.get("idempotency-replayed")]).toEqual([201, "true"])
      expect((yield* story.get("/objects")).items).toHaveLength(1)
    }).pipe(Effect.scoped)
  )

  it.effect("are woken at another server by the end of the first, before they would look by themselves", () =>
    Effect.gen(function* () {
      const { first, goOn, here, key, object, path, there, transactions } = yield* held
      const gone = yield* beginCall(there, path, object, key)
      yield* gone.drop
      const waits = yield* Effect.forkScoped(there.send("POST", path, object, key))
      yield* afterMs(4_000)
      yield* eventually(transactions, (count) => count === 1)
      expect(waits.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(goOn, undefined)
      expect((yield* Fiber.join(first)).status).toBe(201)
      let passedMs = 0
      const step = outboxLimits.tellIntervalMs
      yield* asTimePasses(
        step,
        Effect.sync(() => (passedMs += step)),
        (passed) => waits.pollUnsafe() !== undefined || passed + step >= keyLimits.lookIntervalMs
      )
      expect(waits.pollUnsafe()).toBeDefined()
      const again = yield* Fiber.join(waits)
      expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"])
      expect((yield* here.send("POST", path, object, key)).body).toEqual(again.body)
    }).pipe(Effect.scoped)
  )
})

describe("A transaction in which its server stands still", () => {
  it.effect(
    "is broken off: whoever asked is told to try again, nothing is there, and the repeat does it once",
    () =>
      Effect.gen(function* () {
        const { first, goOn, here, key, object, path, story, transactions } = yield* heldFor(1_500)
        yield* eventually(transactions, (count) => count === 0)
        yield* Deferred.succeed(goOn, undefined)
        const refusal = yield* Fiber.join(first)
        expectProblem(refusal, 503)
        expect(refusal.headers.get("retry-after")).toBe("1")
        expect((yield* story.get("/objects")).items).toEqual([])
        expect((yield* here.send("POST", path, object, key)).status).toBe(201)
        expect((yield* story.get("/objects")).items).toHaveLength(1)
      }).pipe(Effect.scoped)
  )
})

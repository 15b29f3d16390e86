/**
 * A database that works for nobody at the moment: requests are told to come again, and none is told that the server failed.
 */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Redacted, Scope } from "effect"
import { type AddressInfo, createServer, type Server } from "node:net"
import { connect } from "../src/database/postgres-access.ts"
import { StartFailure } from "../src/start-checks.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { parsePrometheus, sumOf } from "../testing/prometheus.ts"
import { acquireSilentWay } from "../testing/silent-way.ts"

describe("A request while the database works for nobody", () => {
  it.live("is answered 503 with the time to wait, and 201 when it works again", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const { become } = yield* operatedDatabase(access)
      const write = story.ask("POST", "/objects", { type: "Thing", properties: {} })
      const read = story.ask("GET", "/objects")

      yield* become("set default_transaction_read_only = on")
      yield* eventually(read, ({ status }) => status === 200)
      for (let round = 0; round < 3; round += 1) {
        const refused = yield* write
        expectProblem(refused, 503)
        expect(refused.headers.get("retry-after")).toBe("1")
      }
      yield* become("reset default_transaction_read_only")
      yield* eventually(write, ({ status }) => status === 201)

      yield* become("connection limit 0")
      for (const asked of [write, read, write, read]) expectProblem(yield* asked, 503)
      yield* become("connection limit -1")
      yield* eventually(write, ({ status }) => status === 201)
    }).pipe(Effect.scoped)
  )

  it.live("/ready says that others hold all connections, and is ready when one is let go", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const { change, sendAway } = yield* operatedDatabase(access)
      const ready = story.send("GET", "/ready", undefined, { authorization: "" })
      expect((yield* ready).status).toBe(200)

      // Of 25 connections somebody else holds 24 and the server none, until it gets the last one.
      const others = yield* Scope.make()
      yield* Effect.provideService(connect(access.ownerUrl), Scope.Scope, others).pipe(
        Effect.repeat({ times: 23 })
      )
      yield* change("connection limit 25")
      yield* sendAway
      expectProblem(yield* eventually(ready, ({ status }) => status === 503), 503)
      // While it still waits for the connections that were ended, it may say that alone.
      yield* eventually(ready, ({ body }) => body?.reason === "databaseFull")

      yield* Scope.close(others, Exit.void)
      yield* eventually(ready, ({ status }) => status === 200)
    }).pipe(Effect.scoped)
  )
})

describe("A scrape while the database does not answer", () => {
  it.live("tells with the server's own token what needs no database, and that it does not answer", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const { become } = yield* operatedDatabase(access)
      const scrape = Effect.map(story.send("GET", "/metrics"), ({ body, status }) => {
        expect(status).toBe(200)
        return parsePrometheus(body)
      })
      const other = story.send("GET", "/metrics", undefined, { authorization: "Bearer another" })
      expect(sumOf(yield* scrape, "tropism_database_up")).toBe(1)

      yield* become("connection limit 0")
      expectProblem(yield* eventually(story.ask("GET", "/objects"), ({ status }) => status === 503), 503)
      const away = yield* scrape
      expect(away.get("tropism_database_up")?.samples).toEqual(new Map([["tropism_database_up", 0]]))
      // What PostgreSQL tells is not told as it was: nobody knows it.
      for (const name of ["queued_runs", "live_runs", "dead_letters", "database_connections"])
        expect(away.has(`tropism_${name}`)).toBe(false)
      expect(sumOf(away, "tropism_http_requests_total", { status: "503" })).toBeGreaterThan(0)
      expect(sumOf(away, "process_resident_memory_bytes")).toBeGreaterThan(10_000_000)
      expectProblem(yield* other, 503)

      yield* become("connection limit -1")
      const back = yield* eventually(scrape, (seen) => sumOf(seen, "tropism_database_up") === 1)
      expect(back.get("tropism_database_connections")?.samples.size).toBe(2)
    }).pipe(Effect.scoped)
  )

  it.live("waits no longer for a database that fell silent than whoever asks whether it is ready", () =>
    Effect.gen(function* () {
      const { access, fallSilent } = yield* acquireSilentWay(yield* freshDatabase)
      const story = yield* newProject(yield* startServer(access), access)
      yield* fallSilent
      const startMs = performance.now()
      const { body, status } = yield* story.send("GET", "/metrics")
      // Who asks otherwise waits ten seconds for a connection.
      expect(performance.now() - startMs).toBeLessThan(8_000)
      expect(status).toBe(200)
      expect(sumOf(parsePrometheus(body), "tropism_database_up")).toBe(0)
    }).pipe(Effect.scoped)
  )
})

it.live(
  "a server whose database breaks off while it starts says so in a sentence, and not that it has a fault",
  () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const broken = yield* acquireClosing
      const serverUrl = Redacted.make(Redacted.value(access.serverUrl).replace(/:\d+\//, `:${broken}/`))
      const started = yield* Effect.exit(startServer({ ...access, serverUrl }))
      expect(Exit.isFailure(started) && Cause.squash(started.cause)).toBeInstanceOf(StartFailure)
    }).pipe(Effect.scoped)
)

/** A port that takes connections and breaks them off at once, as a proxy does whose database is gone. */
const acquireClosing = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

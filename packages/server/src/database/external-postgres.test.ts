/**
 * Reaching a PostgreSQL that others run: the roles it needs, and what is said when it cannot be reached.
 */
import * as nodeFs from "node:fs"
import { createServer } from "node:net"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, inject, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Redacted, Schedule, type Scope } from "effect"
import { readGauges } from "../http/operations-routes.ts"
import { embedded } from "./embedded-postgres.ts"
import { poolLayer } from "./pool.ts"
import { connect, type PostgresAccess, serverRole, withDatabase } from "./postgres-access.ts"
import { external, migrate } from "./schema.ts"

let made = 0

const asAdmin = (...statements: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.flatMap(connect(Redacted.make(inject("postgres").adminUrl)), (admin) =>
      Effect.forEach(statements, (each) => admin.query(each), { discard: true })
    )
  ).pipe(Effect.orDie)

/** An owner with a database of its own, as an administrator would make them; gone with the scope. */
const ownerOf = (rights: string): Effect.Effect<Redacted.Redacted<string>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const name = `outside_${process.pid}_${made++}`
    yield* Effect.acquireRelease(
      asAdmin(
        `create role ${name} login password 'secret' ${rights}`,
        `create database ${name} owner ${name}`
      ),
      () => asAdmin(`drop database ${name} with (force)`, `drop owned by ${name}`, `drop role ${name}`)
    )
    const url = new URL(Redacted.value(withDatabase(Redacted.make(inject("postgres").adminUrl), name)))
    url.username = name
    url.password = "secret"
    return Redacted.make(url.toString())
  })

const ask = (access: PostgresAccess, statement: string) =>
  Effect.scoped(
    Effect.flatMap(
      PgConnection.make({ url: access.serverUrl, startupParameters: access.serverStartupParameters }),
      (connection) => connection.queryValues(statement)
    )
  ).pipe(Effect.orDie)

describe("a PostgreSQL that others run", () => {
  it.live("is used by its owner's login, and the server's work takes on a role that owns nothing", () =>
    Effect.gen(function* () {
      const url = yield* ownerOf("createrole")
      yield* asAdmin(`grant ${serverRole} to ${new URL(Redacted.value(url)).username}`)
      const access = yield* external(url)
      assert.strictEqual(access.embedded, false)
      assert.strictEqual(access.version, inject("postgres").version)
      assert.deepStrictEqual(yield* ask(access, "select current_user"), [[serverRole]])
      const [secured] = yield* ask(
        access,
        "select rolsuper or rolbypassrls from pg_roles where rolname = current_user"
      )
      assert.deepStrictEqual(secured, [false])
    })
  )

  it.live(
    "gets the role from a login that may make roles, also while another database's program makes it",
    () =>
      Effect.gen(function* () {
        const dataFolder = yield* Effect.acquireRelease(
          Effect.sync(() => nodeFs.mkdtempSync(`${inject("postgres").runFolder}/outside-`)),
          (folder) => Effect.sync(() => nodeFs.rmSync(folder, { recursive: true }))
        )
        nodeFs.chmodSync(dataFolder, 0o711)
        const postgres = yield* embedded({ dataFolder, settings: { fsync: "off" } })
        yield* Effect.scoped(
          Effect.flatMap(connect(postgres.adminUrl), (admin) =>
            Effect.forEach(
              [
                "drop database tropism",
                `drop role ${serverRole}`,
                "create role maker login createrole password 'secret'",
                "create database one owner maker",
                "create database two owner maker"
              ],
              (each) => admin.query(each)
            )
          )
        )
        const as = (database: string) =>
          Redacted.make(`postgres://maker:secret@127.0.0.1:${postgres.port}/${database}`)
        const beside = yield* connect(as("two"))
        yield* beside.query("begin")
        yield* beside.query(`create role ${serverRole} nologin`)
        const starting = yield* Effect.forkChild(external(as("one")))
        const admin = yield* connect(postgres.adminUrl)
        yield* admin
          .queryValues("select from pg_locks where not granted")
          .pipe(Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced(10) }))
        yield* beside.query("commit")
        const access = yield* Fiber.join(starting)
        assert.deepStrictEqual(yield* ask(access, "select current_user"), [[serverRole]])
      }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Logger.layer([])]))
  )

  it.live("says to a login that does not own the database how it comes to own it", () =>
    Effect.gen(function* () {
      const url = new URL(Redacted.value(yield* ownerOf("")))
      const owner = new URL(Redacted.value(yield* ownerOf("")))
      yield* asAdmin(`grant ${serverRole} to ${url.username}`)
      url.pathname = owner.pathname
      const { message, reason } = yield* Effect.flip(migrate(Redacted.make(url.toString())))
      assert.strictEqual(reason, "failed")
      assert.include(message, "permission denied for schema public")
      const cure = `alter database "${owner.username}" owner to "${url.username}"`
      assert.include(message, cure)
      yield* asAdmin(cure)
      yield* migrate(Redacted.make(url.toString()))
    }).pipe(Effect.scoped)
  )

  it.live("needs nothing the second time, nor when two programs start at once", () =>
    Effect.gen(function* () {
      const url = yield* ownerOf("superuser")
      const all = yield* Effect.all([external(url), external(url), external(url)], { concurrency: 3 })
      assert.lengthOf(all, 3)
      assert.deepStrictEqual((yield* external(url)).serverStartupParameters, { role: serverRole })
    })
  )

  it.live(
    "tells how many connections are at work there, though no other login may see it",
    () =>
      Effect.gen(function* () {
        const url = yield* ownerOf("createrole")
        yield* asAdmin(`grant ${serverRole} to ${new URL(Redacted.value(url)).username}`)
        const access = yield* external(url)
        yield* Effect.provide(migrate(access.ownerUrl), Logger.layer([]))
        yield* connect(url)
        const seen = yield* Effect.provide(
          readGauges(),
          poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
        )
        // Who asks is at work, and the connection that was opened before is not.
        assert.strictEqual(seen.activeConnections, 1)
        assert.isAtLeast(seen.idleConnections, 1)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("is refused with the statements to run by hand when the login may not make the role", () =>
    Effect.gen(function* () {
      const url = yield* ownerOf("")
      const error = yield* Effect.flip(external(url))
      assert.strictEqual(error.reason, "rightsMissing")
      const name = new URL(Redacted.value(url)).username
      const [, grant = "", connectGrant = ""] = error.message.split("\n").slice(1)
      assert.strictEqual(grant, `grant ${serverRole} to "${name}";`)
      yield* asAdmin(grant, connectGrant)
      assert.deepStrictEqual(yield* ask(yield* external(url), "select current_user"), [[serverRole]])
    })
  )

  it.live("is refused below version 15", () =>
    Effect.gen(function* () {
      const url = yield* ownerOf("superuser")
      yield* Effect.scoped(
        Effect.flatMap(connect(url), (owner) =>
          Effect.forEach(
            [
              "create schema old",
              `create function old.current_setting(text) returns text language sql
                 as 'select case $1 when ''server_version_num'' then ''140012'' else pg_catalog.current_setting($1) end'`,
              `alter role current_user set search_path = old, pg_catalog`
            ],
            (each) => owner.query(each)
          )
        )
      )
      const error = yield* Effect.flip(external(url))
      assert.strictEqual(error.reason, "versionTooOld")
      assert.match(error.message, /\b14\b/)
      assert.match(error.message, /\b15\b/)
    })
  )

  it.live("is refused when it refuses the login, without telling the password", () =>
    Effect.gen(function* () {
      const url = new URL(Redacted.value(yield* ownerOf("")))
      url.password = "wrong-and-private"
      const error = yield* Effect.flip(external(Redacted.make(url.toString())))
      assert.strictEqual(error.reason, "loginRefused")
      assert.notInclude(error.message, "wrong-and-private")
      url.password = "secret"
      url.pathname = "/nowhere"
      const gone = yield* Effect.flip(external(Redacted.make(url.toString())))
      assert.strictEqual(gone.reason, "loginRefused")
      assert.include(gone.message, "nowhere")
    })
  )

  it.live("is told to be out of reach when nobody answers", () =>
    Effect.gen(function* () {
      const port = yield* Effect.callback<number>((resume) => {
        const probe = createServer()
        probe.listen(0, "127.0.0.1", () => {
          const address = probe.address()
          const free = typeof address === "object" && address !== null ? address.port : 0
          probe.close(() => resume(Effect.succeed(free)))
        })
      })
      const error = yield* Effect.flip(external(Redacted.make(`postgres://me:private@127.0.0.1:${port}/db`)))
      assert.strictEqual(error.reason, "unreachable")
      assert.include(error.message, `127.0.0.1:${port}/db`)
      assert.notInclude(error.message, "private")
      const nonsense = yield* Effect.flip(external(Redacted.make("no address at all: private")))
      assert.strictEqual(nonsense.reason, "unreachable")
      assert.notInclude(nonsense.message, "private")
      const other = yield* Effect.flip(external(Redacted.make("mysql://me:private@127.0.0.1:3306/db")))
      assert.strictEqual(other.reason, "unreachable")
      assert.include(other.message, "DATABASE_URL")
      assert.notInclude(other.message, "private")
    })
  )
})

/**
 * The own PostgreSQL through starts, deaths and restarts, with real processes.
 */
import { spawn } from "node:child_process"
import * as nodeFs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import {
  ask,
  dataFolders,
  holding,
  isRoot,
  ordinary,
  run,
  settings,
  waitFor
} from "../../testing/data-folders.ts"
import { noProcessLeft, processesOf, startDatabaseProcess } from "../../testing/database-process.ts"
import { embedded } from "./embedded-postgres.ts"
import { connect } from "./postgres-access.ts"
import { postgresAccount } from "./postgres-programs.ts"

const { copyOfMadeFolder, newFolder } = dataFolders("embedded")

describe("a first start", () => {
  it.live("makes a database with an owner and a server that owns nothing", () =>
    run(
      Effect.gen(function* () {
        const postgres = yield* embedded({ dataFolder: yield* newFolder("first"), settings })
        assert.strictEqual(postgres.version, 18)
        assert.isFalse(postgres.reattached)
        const roles = yield* ask(
          postgres.adminUrl,
          `select rolname, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolcanlogin
             from pg_roles where rolname like 'tropism%' order by 1`
        )
        assert.deepStrictEqual(roles, [
          ["tropism_owner", false, false, false, false, true],
          ["tropism_server", false, false, false, false, true]
        ])
        const [owner] = yield* ask(
          postgres.ownerUrl,
          "select current_user, pg_get_userbyid(datdba), current_database() from pg_database where datname = current_database()"
        )
        assert.deepStrictEqual(owner, ["tropism_owner", "tropism_owner", "tropism"])
        assert.deepStrictEqual(yield* ask(postgres.serverUrl, "select current_user"), [["tropism_server"]])
        const encoding = yield* ask(
          postgres.ownerUrl,
          "select current_setting('server_encoding'), current_setting('timezone'), datlocale, datlocprovider from pg_database where datname = current_database()"
        )
        assert.deepStrictEqual(encoding, [["UTF8", "UTC", "C.UTF-8", "b"]])
      })
    )
  )

  it.live("keeps durability on and lets nobody in without a password", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* copyOfMadeFolder
        const postgres = yield* embedded({ dataFolder: folder })
        const durable = yield* ask(
          postgres.adminUrl,
          "select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('listen_addresses'), current_setting('unix_socket_directories')"
        )
        assert.deepStrictEqual(durable, [["on", "on", "on", "127.0.0.1", ""]])
        const methods = yield* ask(postgres.adminUrl, "select distinct auth_method from pg_hba_file_rules")
        assert.deepStrictEqual(methods, [["scram-sha-256"]])
        const guess = new URL(Redacted.value(postgres.adminUrl))
        guess.password = ""
        const error = yield* Effect.flip(Effect.scoped(connect(Redacted.make(guess.toString()))))
        assert.strictEqual(error.reason._tag, "AuthenticationError")
        assert.strictEqual(nodeFs.statSync(`${folder}/database.json`).mode & 0o777, 0o600)
      })
    )
  )

  it.live("works as an ordinary user", () =>
    run(
      Effect.gen(function* () {
        const parent = yield* newFolder("ordinary", ordinary.user)
        const database = yield* startDatabaseProcess({ dataFolder: `${parent}/.tropism`, ...ordinary })
        const { cluster } = yield* holding(database)
        assert.strictEqual(cluster, `${parent}/.tropism/postgres`)
        assert.strictEqual(nodeFs.statSync(cluster).uid, ordinary.user?.uid ?? process.getuid?.())
        yield* database.end("SIGTERM")
      })
    )
  )

  it.live("works below a folder that only its owner may enter, from a checkout like that", () =>
    run(
      Effect.gen(function* () {
        const closed = yield* newFolder("closed")
        const machineFolder = yield* newFolder("machine")
        nodeFs.chmodSync(closed, 0o700)
        const dataFolder = `${closed}/.tropism`
        const options = { dataFolder, machineFolder, workingFolder: closed }
        const first = yield* startDatabaseProcess(options)
        const made = yield* holding(first)
        yield* first.end("SIGTERM")
        const second = yield* startDatabaseProcess(options)
        const found = yield* holding(second)
        yield* second.end("SIGTERM")
        assert.strictEqual(made.cluster, found.cluster)
        const account = yield* postgresAccount(Option.none())
        assert.strictEqual(nodeFs.statSync(made.cluster).uid, account.uid)
        assert.isTrue(made.cluster.startsWith(account.foreign ? `${machineFolder}/` : `${dataFolder}/`))
        // A folder made anew at the same path gets a database of its own.
        nodeFs.rmSync(dataFolder, { recursive: true })
        const anew = yield* startDatabaseProcess(options)
        const other = yield* holding(anew)
        yield* anew.end("SIGTERM")
        assert.strictEqual(other.cluster === made.cluster, !account.foreign)
      })
    )
  )
})

describe("an interrupted first start", () => {
  const moments: ReadonlyArray<readonly [string, (folder: string) => boolean]> = [
    ["after the passwords are written", (folder) => nodeFs.existsSync(`${folder}/database.json`)],
    [
      "while the cluster is built",
      (folder) =>
        nodeFs.existsSync(folder) &&
        nodeFs
          .readdirSync(folder)
          .some(
            (name) =>
              name.startsWith("postgres.partial-") && nodeFs.existsSync(`${folder}/${name}/data/PG_VERSION`)
          )
    ],
    ["when the cluster is complete", (folder) => nodeFs.existsSync(`${folder}/postgres`)],
    ["while PostgreSQL starts", (folder) => nodeFs.existsSync(`${folder}/postgres/postmaster.pid`)]
  ]

  it.live.each(moments)("repairs itself when it was killed %s", ([, reached]) =>
    run(
      Effect.gen(function* () {
        const dataFolder = `${yield* newFolder("interrupted")}/.tropism`
        const first = yield* startDatabaseProcess({ dataFolder })
        yield* waitFor(() => reached(dataFolder))
        yield* first.end("SIGKILL")
        const postgres = yield* embedded({ dataFolder, settings })
        const rows = yield* ask(
          postgres.ownerUrl,
          "create table kept (n int)",
          "select count(*)::int from kept"
        )
        assert.deepStrictEqual(rows, [[0]])
      })
    )
  )
})

describe("after kill -9 of the program", () => {
  it.live("takes the running server over, and stops it at the end", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const first = yield* startDatabaseProcess({ dataFolder })
        const before = yield* holding(first)
        yield* first.end("SIGKILL")
        const second = yield* startDatabaseProcess({ dataFolder })
        const after = yield* holding(second)
        assert.deepStrictEqual([after.pid, after.port, after.reattached], [before.pid, before.port, true])
        yield* second.end("SIGTERM")
        yield* noProcessLeft(dataFolder)
      })
    )
  )

  it.live("starts the server when it was killed as well, with all data", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const first = yield* startDatabaseProcess({ dataFolder })
        const { pid } = yield* holding(first)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* first.end("SIGKILL")
            const postgres = yield* embedded({ dataFolder })
            assert.isTrue(postgres.reattached)
            yield* ask(postgres.ownerUrl, "create table kept (n int)", "insert into kept values (42)")
            process.kill(pid, "SIGKILL")
          })
        )
        const postgres = yield* embedded({ dataFolder })
        assert.isFalse(postgres.reattached)
        assert.deepStrictEqual(yield* ask(postgres.ownerUrl, "select n from kept"), [[42]])
      })
    )
  )

  it.live("starts where the old process id is another program's by now", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const owner = nodeFs.statSync(`${dataFolder}/postgres`)
        // It belongs to the account of PostgreSQL, so PostgreSQL alone would take it for one of its own.
        const stranger = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn("tail", ["-f", "/dev/null"], {
              ...(isRoot ? { uid: owner.uid, gid: owner.gid } : {}),
              stdio: "ignore"
            })
          ),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        const file = `${dataFolder}/postgres/postmaster.pid`
        nodeFs.writeFileSync(
          file,
          `${stranger.pid}\n${dataFolder}/postgres\n1\n5432\n\n127.0.0.1\n\nready   \n`
        )
        nodeFs.chownSync(file, owner.uid, owner.gid)
        const postgres = yield* embedded({ dataFolder, settings })
        assert.isFalse(postgres.reattached)
        assert.isNull(stranger.exitCode)
        assert.isNull(stranger.signalCode)
      })
    )
  )
})

describe("the end of the program", () => {
  it.live.each(["SIGTERM", "SIGINT"] as const)("by %s leaves no process of PostgreSQL", (signal) =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const database = yield* startDatabaseProcess({ dataFolder })
        const { pid } = yield* holding(database)
        assert.include(yield* processesOf(dataFolder), pid)
        yield* database.end(signal)
        assert.notInclude(yield* processesOf(dataFolder), pid)
      })
    )
  )

  it.live("stops nothing that runs on another folder", () =>
    run(
      Effect.gen(function* () {
        const other = yield* embedded({ dataFolder: yield* copyOfMadeFolder, settings })
        yield* Effect.scoped(embedded({ dataFolder: yield* copyOfMadeFolder, settings }))
        assert.deepStrictEqual(yield* ask(other.ownerUrl, "select 1"), [[1]])
      })
    )
  )
})

describe("the port", () => {
  it.live("stays the same from start to start, and gives way when another program took it", () =>
    run(
      Effect.gen(function* () {
        const one = yield* copyOfMadeFolder
        const two = yield* copyOfMadeFolder
        const first = yield* Effect.scoped(embedded({ dataFolder: one, settings }))
        const again = yield* embedded({ dataFolder: one, settings })
        assert.strictEqual(again.port, first.port)
        const record = JSON.parse(nodeFs.readFileSync(`${two}/database.json`, "utf8"))
        nodeFs.writeFileSync(`${two}/database.json`, JSON.stringify({ ...record, port: first.port }))
        const other = yield* embedded({ dataFolder: two, settings })
        assert.notStrictEqual(other.port, first.port)
        assert.deepStrictEqual(yield* ask(other.ownerUrl, "select 1"), [[1]])
      })
    )
  )
})

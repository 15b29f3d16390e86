/**
 * Data folders for tests of the embedded PostgreSQL, and what such tests ask of it.
 *
 * One first start per test file makes a folder; its copies start in a quarter
 * of the time. All lie in the folder of the run, which is removed with it.
 */
import { spawn } from "node:child_process"
import * as nodeFs from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, type FileSystem, Logger, type Path, type Redacted, Schedule, type Scope } from "effect"
import { assert, beforeAll, inject } from "vitest"
import { embedded } from "../src/database/embedded-postgres.ts"
import { connect } from "../src/database/postgres-access.ts"
import type { DatabaseProcess } from "./database-process.ts"

/** For clusters that no test needs after a crash. */
export const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }

export const isRoot = process.getuid?.() === 0

const nobody = { uid: 65534, gid: 65534 }

/** Someone who is not root: the tester himself, or nobody where root tests. */
export const ordinary = isRoot ? { user: nobody } : {}

type Needs = Scope.Scope | FileSystem.FileSystem | Path.Path

/** Gives a test its scope and the machine, and keeps it quiet. */
export const run = <A, E>(effect: Effect.Effect<A, E, Needs>) =>
  effect.pipe(Effect.scoped, Effect.provide([NodeServices.layer, Logger.layer([])]))

/** Makes the folders of one test file. */
export const dataFolders = (name: string) => {
  const home = nodeFs.mkdtempSync(`${inject("postgres").runFolder}/${name}-`)
  nodeFs.chmodSync(home, 0o755)
  const made = `${home}/made`
  beforeAll(() => Effect.runPromise(run(Effect.asVoid(embedded({ dataFolder: made, settings })))))

  /** A new folder of its own for a test, which anyone may enter. */
  const newFolder = (prefix: string, owner?: { readonly uid: number; readonly gid: number }) =>
    Effect.sync(() => {
      const folder = nodeFs.mkdtempSync(`${home}/${prefix}-`)
      nodeFs.chmodSync(folder, 0o755)
      if (owner !== undefined) nodeFs.chownSync(folder, owner.uid, owner.gid)
      return folder
    })

  /** A data folder whose first start is done: clusters can be copied and moved. */
  const copyOfMadeFolder = Effect.gen(function* () {
    const folder = yield* newFolder("copy")
    yield* Effect.callback<void>((resume) => {
      spawn("cp", ["-a", `${made}/.`, folder]).on("close", () => resume(Effect.void))
    })
    return folder
  })

  return { newFolder, copyOfMadeFolder }
}

/** What the program holds; fails the test when it was refused. */
export const holding = (database: DatabaseProcess) =>
  Effect.map(database.said, (said) => ("reason" in said ? assert.fail(said.message) : said))

/** Why the program was refused; fails the test when it was not. */
export const refused = (database: DatabaseProcess) =>
  Effect.map(database.said, (said) =>
    "reason" in said ? said : assert.fail("the program holds the database")
  )

/** Runs statements on one connection and answers the rows of the last. */
export const ask = (url: Redacted.Redacted<string>, ...statements: ReadonlyArray<string>) =>
  Effect.flatMap(connect(url), (connection) =>
    Effect.forEach(statements, (each) => connection.queryValues(each))
  ).pipe(
    Effect.map((answers) => answers.at(-1) ?? []),
    Effect.scoped,
    Effect.orDie
  )

/** Looks until the condition holds. */
export const waitFor = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced(1) }),
    Effect.timeout(100_000),
    Effect.orDie
  )

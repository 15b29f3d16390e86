/**
 * `npm run simulate -- --seeds N --seed S`: simulates seeds and tells which of them broke something.
 *
 * At the end it says which faults have struck, and which crash points never did,
 * and how long it took at most until everything was final. It runs on a PostgreSQL of its own in a temporary folder, which goes with it.
 * `--seed` alone repeats one seed, and `--trace` shows each of its turns; with `--until-broken` it begins
 * no seed behind one that broke something. Seeds
 * mean what they mean for one state of the code: a statement more in a server
 * moves every turn after it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Exit, FileSystem, Logger } from "effect"
import { readNumber, readOptions } from "../../../scripts/program-options.ts"
import { embedded, type EmbeddedPostgres } from "../src/database/embedded-postgres.ts"
import { migrate, closeToOthers, databaseName } from "../src/database/schema.ts"
import { connect, ownerRole, withDatabase } from "../src/database/postgres-access.ts"
import { quickFolder } from "../testing/quick-folder.ts"
import { coverageText, makeCoverage } from "./coverage.ts"
import { simulateAll } from "./lanes.ts"
import { leaveOutLongTimers } from "./long-timers.ts"
import { type Report, reportText, seconds } from "./simulate.ts"

const { values } = readOptions(
  "npm run simulate -- [--seed S] [--seeds N] [--lanes N at once] [--until-broken] [--trace]",
  {
    seeds: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    lanes: { type: "string", default: "4" },
    "until-broken": { type: "boolean", default: false },
    trace: { type: "boolean", default: false }
  }
)
const first = readNumber("seed", values.seed, 0)
const count = readNumber("seeds", values.seeds, 1)
const lanes = readNumber("lanes", values.lanes, 1)

/** Nothing here outlives the program, so nothing is flushed; a deadlock is found at once, so that a seed repeats it. */
const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_connections: "400",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
  deadlock_timeout: "1ms"
}

/** Seeds after which a line says how far it is. */
const seedsPerLine = 50

const startPostgres = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const folder = yield* fileSystem.makeTempDirectoryScoped({
    directory: quickFolder,
    prefix: "tropism-simulation-"
  })
  yield* fileSystem.chmod(folder, 0o711)
  const postgres = yield* embedded({ dataFolder: folder, settings })
  yield* migrate(postgres.ownerUrl)
  return postgres
})

/** A copy of the migrated database. */
const copyDatabase = Effect.fnUntraced(function* (postgres: EmbeddedPostgres, name: string) {
  const admin = yield* connect(postgres.adminUrl)
  yield* admin.query(`create database ${name} template ${databaseName} owner ${ownerRole}`)
  yield* closeToOthers(admin, name)
  return {
    ...postgres,
    ownerUrl: withDatabase(postgres.ownerUrl, name),
    serverUrl: withDatabase(postgres.serverUrl, name)
  }
}, Effect.orDie)

const livenessOf = (report: Report | undefined): number => report?.phases?.livenessMs ?? -1

const program = Effect.gen(function* () {
  yield* leaveOutLongTimers
  const postgres = yield* startPostgres
  const startMs = yield* Clock.currentTimeMillis
  let databases = 0
  let done = 0
  let failed = 0
  let slowest: Report | undefined
  const coverage = makeCoverage()
  const left = Array.from({ length: count }, (_, index) => first + index)
  yield* simulateAll({
    seeds: left,
    lanes: Math.min(count, lanes),
    openDatabase: Effect.suspend(() => copyDatabase(postgres, `simulation_${(databases += 1)}`)),
    onReport: Effect.fnUntraced(function* (report) {
      done += 1
      coverage.note(report.faults)
      if (livenessOf(report) > livenessOf(slowest)) slowest = report
      if (report.complaints.length > 0) {
        failed += 1
        if (values["until-broken"]) left.length = 0
        yield* Console.log(reportText(report))
      }
      if (done % seedsPerLine > 0 && done < count) return
      const seconds = ((yield* Clock.currentTimeMillis) - startMs) / 1_000
      yield* Console.log(
        `${done} of ${count} seeds, ${failed} failed, ${(done / seconds).toFixed(1)} seeds/s`
      )
    }),
    ...(values.trace ? { trace: (line: string) => void process.stdout.write(`${line}\n`) } : {})
  })
  yield* Console.log(coverageText(coverage))
  yield* Console.log(
    `everything was final after ${seconds(livenessOf(slowest))} of liveness at most, with seed ${slowest?.seed}`
  )
  yield* Effect.sync(() => void (process.exitCode = failed > 0 ? 1 : 0))
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Logger.layer([])]))

// What a killed server left lying still holds timers: the program does not wait for them.
NodeRuntime.runMain(program, {
  teardown: (exit) => process.exit(Exit.isSuccess(exit) ? (process.exitCode ?? 0) : 1)
})

/**
 * Simulates many seeds on a few databases at once.
 *
 * A server serves every project of its database, so two simulations never share
 * one: each lane has its own and takes seeds one after another, each in a new
 * project. A seed that left work undone would give it to the next one, so its
 * lane gets a new database; and so does one that has simulated many, because
 * each leaves its rows behind and makes the next one slower.
 */
import { Effect, type Scope } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { livenessChecker, type Report, simulate, type Surroundings } from "./simulate.ts"
import { openSurroundings } from "./surroundings.ts"

export interface LaneOptions {
  /** Those that nobody has taken yet; a lane takes them from the front, and whoever empties it ends them all. */
  readonly seeds: Array<number>
  readonly lanes: number
  /** Makes a migrated, empty database that goes with the scope. */
  readonly openDatabase: Effect.Effect<PostgresAccess, never, Scope.Scope>
  /** Told of a seed that has ended, and where its rows are. */
  readonly onReport: (report: Report, access: PostgresAccess) => Effect.Effect<void>
  readonly trace?: ((line: string) => void) | undefined
}

/** Simulates every seed and tells of each as it ends. */
export const simulateAll = Effect.fn("simulateAll")(function* (options: LaneOptions) {
  const lane = Effect.gen(function* () {
    while (options.seeds.length > 0) yield* Effect.scoped(useDatabase(options))
  })
  yield* Effect.all(
    Array.from({ length: options.lanes }, () => lane),
    { concurrency: options.lanes, discard: true }
  )
})

/** Simulates a seed; whoever breaks it off waits until nothing of it moves any more, because its database goes next. */
const simulated = (surroundings: Surroundings, seed: number, trace: LaneOptions["trace"]) =>
  Effect.callback<Report>((resume, signal) => {
    const played = Effect.promise(() => simulate(surroundings, seed, trace, signal))
    const ended = Effect.runPromiseExit(played)
    void ended.then(resume)
    return Effect.promise(() => ended)
  })

/** Seeds of one database. In more of them PostgreSQL works on what is left of others; in fewer, on learning each statement anew. */
const seedsPerDatabase = 60

/** Takes seeds until there is none left, one has left work behind or the database has had its share. */
const useDatabase = Effect.fnUntraced(function* ({ onReport, openDatabase, seeds, trace }: LaneOptions) {
  const access = yield* openDatabase
  const surroundings = yield* openSurroundings(access)
  for (let taken = 0; taken < seedsPerDatabase; taken++) {
    const seed = seeds.shift()
    if (seed === undefined) return
    const report = yield* simulated(surroundings, seed, trace)
    yield* onReport(report, access)
    if (report.complaints.some(({ checker }) => checker === livenessChecker)) return
  }
})

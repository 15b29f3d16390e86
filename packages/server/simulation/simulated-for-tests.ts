/**
 * Many seeds, simulated once for all tests that look at what became of them; their rows stay in the database.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Scope } from "effect"
import { connect, type PostgresAccess } from "../src/database/postgres-access.ts"
import { inNight } from "../testing/tier.ts"
import { simulationDatabase } from "./database-for-tests.ts"
import { simulateAll } from "./lanes.ts"
import type { Remains } from "./remains.ts"
import type { Report } from "./simulate.ts"

/** What a simulation without a complaint left, and a login that may spoil it. */
export interface Project {
  readonly id: string
  readonly owner: PgConnection.PgConnection
  readonly remains: Remains
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

/**
 * Those of the eighty that together reach every kind of fault, most crash points, every way to come to rest and whoever is
 * only in some worlds, and so rows for nearly every plant. Who changes the simulation so that they do so no more chooses
 * others, of `npm run soak`.
 */
const chosen = [
  1, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 20, 22, 29, 32, 34, 36, 39, 42, 52, 53, 56, 60, 65, 70
]

export const seeds: ReadonlyArray<number> = inNight(upTo(80), chosen)

/** Simulates seeds on databases that outlive their lanes. */
const simulateSeeds = Effect.fnUntraced(function* (
  some: ReadonlyArray<number>,
  lanes: number,
  scope: Scope.Scope
) {
  const ended: Array<{ readonly report: Report; readonly access: PostgresAccess }> = []
  yield* simulateAll({
    seeds: [...some],
    lanes,
    openDatabase: Effect.provideService(simulationDatabase, Scope.Scope, scope),
    onReport: (report, access) => Effect.sync(() => void ended.push({ report, access }))
  })
  const owners = new Map<PostgresAccess, PgConnection.PgConnection>()
  for (const { access } of ended)
    if (!owners.has(access))
      owners.set(access, yield* Effect.provideService(connect(access.ownerUrl), Scope.Scope, scope))
  const inOrder = ended.toSorted((one, other) => one.report.seed - other.report.seed)
  return {
    reports: inOrder.map(({ report }) => report),
    projects: inOrder.flatMap(({ access, report: { complaints, project } }): ReadonlyArray<Project> => {
      const owner = owners.get(access)
      return project && owner && complaints.length === 0 ? [{ ...project, owner }] : []
    })
  }
})

/** So many other seeds are asked where the chosen left no row for a plant: what a seed leaves depends on the machine's pace, too. */
const mostOthers = 16

const simulateChosen = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const { projects, reports } = yield* simulateSeeds(seeds, 4, scope)
  const all = [...projects]
  const others = upTo(80)
    .filter((seed) => !seeds.includes(seed))
    .slice(0, mostOthers)
  const projectAt = Effect.fnUntraced(function* (index: number) {
    while (index >= all.length) {
      const seed = others.shift()
      if (seed === undefined) return undefined
      all.push(...(yield* Effect.orDie(simulateSeeds([seed], 1, scope))).projects)
    }
    return all[index]
  })
  return { reports, projects, projectAt }
})

export class Simulated extends Context.Service<
  Simulated,
  {
    /** What became of each seed. */
    readonly reports: ReadonlyArray<Report>
    /** What those left that broke nothing. */
    readonly projects: ReadonlyArray<Project>
    /** The same one by one, and behind them what some other seeds leave, each simulated when it is first asked for; undefined behind the last. */
    readonly projectAt: (index: number) => Effect.Effect<Project | undefined>
  }
>()("@tropism/server/simulation/Simulated") {
  static readonly layer = Layer.effect(Simulated, Effect.map(simulateChosen, Simulated.of))
}

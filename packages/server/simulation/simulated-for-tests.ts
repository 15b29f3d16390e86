/**
 * Many seeds, simulated once for all tests that look at what became of them; their rows stay in the database.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Scope } from "effect"
import { connect, type PostgresAccess } from "../src/database/postgres-access.ts"
import { inSoak } from "../testing/soak.ts"
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
 * The first twelve, and of the others those that reach what these do not: every kind of fault and crash point, and
 * rows for every plant. Who changes the simulation so that they do so no more chooses others, of `npm run soak`.
 */
const chosen = [
  ...upTo(12),
  ...[16, 18, 19, 20, 22, 28, 29, 30, 33, 34, 39, 43, 48, 52, 56, 59, 60, 62, 65, 70, 73, 76]
]

export const seeds: ReadonlyArray<number> = inSoak(upTo(80), chosen)

const simulateSeeds = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const ended: Array<{ readonly report: Report; readonly access: PostgresAccess }> = []
  yield* simulateAll({
    seeds,
    lanes: 4,
    // The databases outlive their lanes.
    openDatabase: Effect.provideService(simulationDatabase, Scope.Scope, scope),
    onReport: (report, access) => Effect.sync(() => void ended.push({ report, access }))
  })
  const owners = new Map<PostgresAccess, PgConnection.PgConnection>()
  for (const { access } of ended) if (!owners.has(access)) owners.set(access, yield* connect(access.ownerUrl))
  const inOrder = ended.toSorted((one, other) => one.report.seed - other.report.seed)
  return {
    reports: inOrder.map(({ report }) => report),
    projects: inOrder.flatMap(({ access, report: { complaints, project } }): ReadonlyArray<Project> => {
      const owner = owners.get(access)
      return project && owner && complaints.length === 0 ? [{ ...project, owner }] : []
    })
  }
})

export class Simulated extends Context.Service<
  Simulated,
  {
    /** What became of each seed. */
    readonly reports: ReadonlyArray<Report>
    /** What those left that broke nothing. */
    readonly projects: ReadonlyArray<Project>
  }
>()("@tropism/server/simulation/Simulated") {
  static readonly layer = Layer.effect(Simulated, Effect.map(simulateSeeds, Simulated.of))
}

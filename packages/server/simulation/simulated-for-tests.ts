/**
 * Simulations that ended without a complaint, with their rows still in the database.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { connect } from "../src/database/postgres-access.ts"
import { simulationDatabase } from "./database-for-tests.ts"
import type { Remains } from "./remains.ts"
import { simulate } from "./simulate.ts"
import { openSurroundings } from "./surroundings.ts"

export interface Project {
  readonly id: string
  readonly owner: PgConnection.PgConnection
  readonly remains: Remains
}

/** The projects of some seeds on a database of their own, all without a complaint. */
const simulateSome = Effect.fnUntraced(function* (seeds: ReadonlyArray<number>) {
  const access = yield* simulationDatabase
  const surroundings = yield* openSurroundings(access)
  const owner = yield* connect(access.ownerUrl)
  const projects: Array<Project> = []
  for (const seed of seeds) {
    const { project, complaints } = yield* Effect.promise(() => simulate(surroundings, seed))
    if (project !== undefined && complaints.length === 0) projects.push({ ...project, owner })
  }
  return projects
})

/** Together they leave a row for every plant. */
const seedsPerDatabase = 15

export class Simulated extends Context.Service<Simulated, ReadonlyArray<Project>>()(
  "@tropism/server/simulation/Simulated"
) {
  static readonly layer = Layer.effect(
    Simulated,
    Effect.map(
      Effect.all(
        [0, 1, 2].map((part) =>
          simulateSome(Array.from({ length: seedsPerDatabase }, (_, index) => 3 * index + part + 1))
        ),
        { concurrency: 3 }
      ),
      (parts) => Simulated.of(parts.flat())
    )
  )
}

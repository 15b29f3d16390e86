/**
 * A few seeds of the simulation: servers die, freeze and stop, statements and connections fail, and every promise holds.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { simulationDatabase } from "./database-for-tests.ts"
import { simulateAll } from "./lanes.ts"
import { type Report, reportText } from "./simulate.ts"

const seeds = [4, 10]

describe("The simulation", () => {
  it.live("finds no broken promise in a few seeds, and faults struck in each", () =>
    Effect.gen(function* () {
      const reports: Array<Report> = []
      yield* simulateAll({
        seeds: [...seeds],
        lanes: 2,
        openDatabase: simulationDatabase,
        onReport: (report) => Effect.sync(() => void reports.push(report))
      })
      expect(reports.filter(({ complaints }) => complaints.length > 0).map(reportText)).toEqual([])
      expect(reports.map(({ faults, seed }) => [seed, faults.length > 0]).toSorted()).toEqual(
        seeds.map((seed) => [seed, true]).toSorted()
      )
    })
  )
})

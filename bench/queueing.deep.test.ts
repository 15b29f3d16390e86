/**
 * The simulation of queueing against what is known of queues, and the page on sizing against the simulation.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { runProgram } from "../packages/server/testing/run-program.ts"
import {
  arrivalsOf,
  costs,
  departuresOf,
  erlangWait,
  loadOf,
  peakOf,
  seeded,
  sizes,
  table
} from "./queueing.ts"

const meanOf = (sample: ReadonlyArray<number>): number =>
  sample.reduce((sum, value) => sum + value, 0) / sample.length

describe("the simulation of queueing", () => {
  it.each([
    [1, 0.5],
    [1, 0.8],
    [4, 0.7],
    [16, 0.9]
  ])("waits at %i places that work %f of their time as long as Erlang's formula says", (places, share) => {
    const random = seeded(7)
    const service = 0.004
    const rate = (share * places) / service
    const arrivals = arrivalsOf(random, 400_000 / rate, rate, () => rate)
    const services = arrivals.map(() => -Math.log(1 - random()) * service)
    const departures = departuresOf(arrivals, places, (index) => services[index] ?? 0)
    const waits = departures.map((at, index) => at - (arrivals[index] ?? 0) - (services[index] ?? 0))
    const ratio = meanOf(waits) / erlangWait(rate, service, places)
    expect(ratio).toBeGreaterThan(0.93)
    expect(ratio).toBeLessThan(1.07)
  })

  it("knows the formula for one place, which is short", () => {
    // M/M/1: the load through what is free, times the service.
    expect(erlangWait(150, 0.004, 1)).toBeCloseTo((0.6 / 0.4) * 0.004, 12)
    // Two places at half their time: a third waits (Erlang C of load 1).
    expect(erlangWait(1, 1, 2)).toBeCloseTo(1 / 3, 12)
  })

  it("lets events come as often as the hour says", () => {
    const arrivals = arrivalsOf(seeded(3), 200, 1_000, (second) => (second < 100 ? 1_000 : 250))
    const early = arrivals.filter((at) => at < 100).length
    expect(early / 100_000).toBeCloseTo(1, 1)
    expect((arrivals.length - early) / 25_000).toBeCloseTo(1, 1)
  })
})

describe("docs/deployment.md", () => {
  const page = readFileSync(join(import.meta.dirname, "../docs/deployment.md"), "utf8")

  it("rests on what the page of figures says that a write and a reaction cost", () => {
    const figures = readFileSync(join(import.meta.dirname, "../docs/performance.md"), "utf8")
    const cellsOf = (row: string): ReadonlyArray<number> => {
      const line = figures.split("\n").find((each) => each.startsWith(`| ${row} |`)) ?? ""
      return [...line.matchAll(/([\d.]+) ms/g)].map(([, ms]) => Number(ms))
    }
    const [both = 0] = cellsOf("a reaction of 1 step with its write")
    const [server = 0, database] = cellsOf("a reaction of 1 step out of a backlog")
    const [walled] = cellsOf("graph write with the second wall, PostgreSQL's processor time")
    const told = Object.values(costs).flatMap((cost) => [cost.server, cost.database])
    expect(told.map((seconds) => (seconds * 1_000).toFixed(1))).toEqual(
      [both - server, walled, server, database].map((ms) => ms?.toFixed(1))
    )
    for (const [name, { database: atDatabase, server: atServer }] of Object.entries(costs))
      expect(page).toMatch(
        new RegExp(
          `\\| a ${name}[^|]* \\| ${(atServer * 1_000).toFixed(1)} ms \\| ${(atDatabase * 1_000).toFixed(1)} ms \\|`
        )
      )
  })

  it("has the table that the simulation prints", () => {
    for (const line of table()) expect(page).toContain(line)
  }, 60_000)

  it("calls no size enough whose processors would work for more than two thirds of the peak hour", () => {
    const enough = sizes.filter((size) => {
      const { database, servers } = loadOf(size, peakOf(size))
      return Math.max(database, servers) < 2 / 3
    })
    const told = page.split("\n").filter((line) => line.startsWith("- Enough for "))
    expect(told.map((line) => line.replace(/:.*/, ""))).toEqual(
      enough.map(
        ({ databaseProcessors, events, servers }) =>
          `- Enough for ${events.toLocaleString("en")} a day are ${servers} and ${databaseProcessors}`
      )
    )
  })
})

it.each([["--x"], ["x"]])("npm run sizing takes no %s", async (option) => {
  expect(await runProgram(join(import.meta.dirname, "queueing.ts"), option)).toEqual({
    code: 2,
    output: expect.stringMatching(new RegExp(`${option}[^]*\n\nnpm run sizing\n$`))
  })
})

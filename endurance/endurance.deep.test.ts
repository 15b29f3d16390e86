/**
 * The endurance trials work: a small one of each runs through, and what grows or is missing is told.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { runProgram } from "../packages/server/testing/run-program.ts"
import { recordedIn } from "./record.ts"
import { exactly, flatness } from "./trial.ts"
import { coursesOf, fewestLooks, type Look } from "./watch.ts"

const runTrials = (...flags: ReadonlyArray<string>) =>
  runProgram(join(import.meta.dirname, "main.ts"), ...flags)

/** Forty looks, whose memory, handles and connections are made from how far the time is. */
const looks = (at: (share: number) => Partial<Look>): ReadonlyArray<Look> =>
  Array.from({ length: 40 }, (_, index) => ({
    residentMb: 200,
    handles: 40,
    connections: 20,
    ...at(index / 39)
  }))

/** A trial's place on the page, with what stands there. */
const between = (page: string, name: string): string =>
  page.slice(page.indexOf(`<!-- ${name} -->`), page.indexOf(`<!-- end of ${name} -->`))

const notFlat = (all: ReadonlyArray<Look>) =>
  coursesOf(all)
    .filter(({ isFlat }) => !isFlat)
    .map(({ what }) => what)

describe("endurance", () => {
  it(
    "a small trial of each kind loses nothing, does nothing twice and tells it in a table",
    () =>
      runTrials("--small").then(({ code, output }) => {
        expect([code, output]).toEqual([0, expect.stringContaining("times and growth were not judged")])
        expect(output.match(/^### /gm)).toHaveLength(3)
        expect(output.match(/\| exactly .*\*\*holds\*\*/g)).toHaveLength(12)
        expect(output).not.toContain("NaN")
      }),
    300_000
  )

  it("a trial that does not exist is refused with the names of those that do", () =>
    runTrials("--only", "dreams").then(({ code, output }) => {
      expect([code, output]).toEqual([2, expect.stringContaining("--only knows events, subscribers, writes")])
    }))

  it("what warms up and then stays is flat", () => {
    expect(
      notFlat(looks((share) => ({ residentMb: share < 0.2 ? 120 : 260, handles: share < 0.1 ? 20 : 40 })))
    ).toEqual([])
  })

  it("what grows is told, each by itself", () => {
    expect(notFlat(looks((share) => ({ residentMb: 200 + 200 * share })))).toEqual(["memory"])
    expect(notFlat(looks((share) => ({ handles: 40 + Math.round(40 * share) })))).toEqual(["file handles"])
    expect(notFlat(looks((share) => ({ connections: 20 + Math.round(20 * share) })))).toEqual([
      "connections to PostgreSQL"
    ])
  })

  it("a heap that is larger at rest behind the load is told", () => {
    const holds = (after: number) =>
      flatness(
        looks(() => ({})),
        { before: 50_000_000, after }
      ).filter(({ bound }) => bound?.holds === false)
    expect(holds(60_000_000)).toEqual([])
    expect(holds(90_000_000)).toMatchObject([{ what: expect.stringContaining("heap") }])
  })

  it("too few looks are no judgement", () => {
    expect(() => coursesOf(looks(() => ({})).slice(0, fewestLooks - 1))).toThrow("too few")
  })

  it("one too many and one too few are told alike", () => {
    expect([99, 100, 101].map((seen) => exactly("runs", seen, 100).bound?.holds)).toEqual([
      false,
      true,
      false
    ])
  })

  it("a small trial is not recorded", () =>
    runTrials("--small", "--record").then(({ code, output }) => {
      expect([code, output]).toEqual([2, expect.stringContaining("--record keeps whole trials only")])
    }))

  it("a trial's result is written in place of the one before, and those of others stay", () => {
    const page = readFileSync(join(import.meta.dirname, "../docs/testing.md"), "utf8")
    const first = recordedIn(page, "writes", "It held.")
    const second = recordedIn(recordedIn(first, "events", "They came."), "writes", "It held again.")
    expect(first).toContain("It held.")
    expect(second).toContain("They came.")
    expect(second).toContain("It held again.")
    expect(second).not.toContain("It held.")
    for (const name of ["events", "subscribers"]) expect(first).toContain(between(page, name))
    expect(() => recordedIn("# Another page", "writes", "It held.")).toThrow("<!-- writes -->")
  })
})

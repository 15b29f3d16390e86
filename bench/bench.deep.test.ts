/**
 * The bench works: a small run of it prints figures, and all of them are numbers.
 *
 * How large they are is nobody's business here: a machine that is busy with
 * tests tells nothing about speed.
 */
import { join } from "node:path"
import { expect, it } from "vitest"
import { atRate } from "./doors.ts"
import { runProgram } from "../packages/server/testing/run-program.ts"

const runBench = (...flags: ReadonlyArray<string>) =>
  runProgram(join(import.meta.dirname, "main.ts"), ...flags)

it(
  "a small bench runs through and prints a line of JSON and a row for each figure",
  () =>
    runBench("--small").then(({ code, output }) => {
      expect([code, output]).toEqual([0, expect.stringContaining("| figure")])
      const lines = output.split("\n").filter((line) => line.startsWith("{"))
      const figures = lines.map((line) => JSON.parse(line))
      expect(figures.length).toBeGreaterThan(20)
      expect(figures.filter(({ value }) => !(value >= 0))).toEqual([])
      expect(output.split("\n").filter((line) => line.startsWith("|"))).toHaveLength(figures.length + 2)
    }),
  300_000
)

it("a part that does not exist is refused with the names of those that do", () =>
  runBench("--only", "dreams").then(({ code, output }) => {
    expect([code, output]).toEqual([2, expect.stringContaining("--only knows idle, writes")])
  }))

it("a file that cannot be kept is refused before anything is measured", () =>
  runBench("--small", "--only", "writes", "--json", "/nonexistent/x.json").then(({ code, output }) => {
    expect([code, output]).toEqual([
      2,
      "--json takes a file that can be written, and not /nonexistent/x.json: no such file or directory\n"
    ])
  }))

it("a load of which one request fails begins no more and fails with its reason", () => {
  const begun: Array<number> = []
  const load = atRate(50, 20, (index) => {
    begun.push(index)
    return index === 1 ? Promise.reject(new Error("refused")) : Promise.resolve()
  })
  return expect(load)
    .rejects.toThrow("refused")
    .then(() => expect(begun).not.toContain(19))
})

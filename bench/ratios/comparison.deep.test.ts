/**
 * Bounds are judged by ratios of one round, turns are taken, and what cannot be compared is refused.
 *
 * Nothing here needs a peer: those are installed by whoever compares.
 */
import { join } from "node:path"
import { expect, it } from "vitest"
import { runProgram } from "../../packages/server/testing/run-program.ts"
import { judge, outcomesOf, sentenceOf, type Subject, takeTurns } from "./comparison.ts"

const ours = { subject: "ours", figure: "a step" }
const theirs = { subject: "theirs", figure: "a step" }

const round = (a: number, b: number) =>
  new Map([["ours", { "a step": a }] as const, ["theirs", { "a step": b }] as const])

it("a bound is judged by the median of the rounds' ratios and not by the ratio of medians", () => {
  // A machine that is busy in a round is busy for both.
  const taken = [round(1, 2), round(10, 20), round(30, 20)]
  const verdict = judge(taken, { of: ours, against: theirs, most: 0.5 })
  expect(verdict).toEqual({
    bound: "ours: a step ≤ 0.5× of theirs",
    rounds: [0.5, 0.5, 1.5],
    ratio: 0.5,
    holds: true
  })
  expect(judge(taken, { of: ours, against: theirs, most: 0.49 }).holds).toBe(false)
})

it("a bound from below, and one that stands alone, are judged as they say", () => {
  const taken = [round(90, 100), round(100, 100), round(110, 100)]
  expect(judge(taken, { of: ours, against: theirs, least: 1 }).holds).toBe(true)
  expect(judge(taken, { of: ours, least: 101 })).toMatchObject({ ratio: 100, holds: false })
})

it("a ratio of which nothing was promised is told and not judged", () => {
  expect(judge([round(1, 4)], { of: ours, against: theirs })).toEqual({
    bound: "ours: a step of theirs",
    rounds: [0.25],
    ratio: 0.25
  })
})

it("what was not measured holds no bound", () => {
  expect(judge([round(1, 2)], { of: { ...ours, figure: "a turn" }, against: theirs, most: 5 }).holds).toBe(
    false
  )
})

it("a bound is told with what differs between its two sides", () => {
  expect(sentenceOf({ of: ours, against: { ...ours, figure: "a turn" }, most: 1.2 })).toBe(
    "ours: a step ≤ 1.2× of a turn"
  )
  expect(sentenceOf({ of: ours, against: theirs })).toBe("ours: a step of theirs")
  expect(sentenceOf({ of: ours, most: 2 })).toBe("ours: a step ≤ 2")
  expect(sentenceOf({ of: ours, against: theirs, least: 1, isAim: true })).toBe(
    "aim, ours: a step ≥ 1× of theirs"
  )
})

it("subjects take turns, who begins moves on, and the first round only warms up", async () => {
  const order: Array<string> = []
  const subject = (name: string): Subject => ({
    name,
    measure: () => Promise.resolve({ "a step": order.push(name) })
  })
  const subjects = [subject("ours"), subject("theirs")]
  const taken = await takeTurns(subjects, 2, () => undefined)
  expect(order).toEqual(["ours", "theirs", "theirs", "ours", "ours", "theirs"])
  expect(outcomesOf(taken, subjects, { "a step": "ms" })).toEqual([
    { subject: "ours", figure: "a step", unit: "ms", rounds: [4, 5], median: 5 },
    { subject: "theirs", figure: "a step", unit: "ms", rounds: [3, 6], median: 6 }
  ])
})

it("a comparison that does not exist is refused with the names of those that do, before anything is installed", () =>
  runProgram(join(import.meta.dirname, "main.ts"), "--only", "dreams").then(({ code, output }) => {
    expect([code, output]).toEqual([2, expect.stringContaining("--only knows steps, ")])
    expect(output).not.toContain("Installing")
  }))

it("a file that cannot be kept is refused before anything is installed", () =>
  runProgram(join(import.meta.dirname, "main.ts"), "--small", "--json", import.meta.dirname).then(
    ({ code, output }) => {
      expect([code, output]).toEqual([2, expect.stringMatching(/^--json takes a file that can be written/)])
    }
  ))

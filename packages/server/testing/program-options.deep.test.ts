/**
 * What a program says of options that cannot be meant, before it begins.
 */
import { expect, it } from "@effect/vitest"
import { join } from "node:path"
import { runProgram } from "./run-program.ts"

const simulate = async (...options: ReadonlyArray<string>) => {
  const { code, output } = await runProgram(join(import.meta.dirname, "../simulation/main.ts"), ...options)
  return [code, output.trim().split("\n")[0]]
}

const usage = "npm run simulate -- [--seed S] [--seeds N] [--lanes N at once] [--until-broken] [--trace]"

it.each([
  [["--seeds", "0"], 2, "--seeds takes a whole number from 1 on, and not 0"],
  [["--seed", "x"], 2, "--seed takes a whole number from 0 on, and not x"],
  [["--lanes", "1e3"], 2, "--lanes takes a whole number from 1 on, and not 1e3"],
  [["--seeds", "-5"], 2, "--seeds takes a whole number from 1 on, and not -5"],
  [["--until-broken", "-5"], 2, expect.stringContaining("-5")],
  [["--nonsense"], 2, expect.stringContaining("--nonsense")],
  [["--help"], 0, usage]
])("%j ends with %d and a sentence", async (options, status, sentence) => {
  expect(await simulate(...options)).toEqual([status, sentence])
})

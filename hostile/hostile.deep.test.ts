/**
 * A small hostile run holds: values beyond each bound, bytes that are no HTTP, and some requests of every operation.
 */
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { quickFolder } from "../packages/server/testing/quick-folder.ts"
import { runProgram } from "../packages/server/testing/run-program.ts"

const runHostile = (...flags: ReadonlyArray<string>) =>
  runProgram(join(import.meta.dirname, "main.ts"), ...flags)

it(
  "nothing is found, and what was sent is told",
  () =>
    runHostile("--requests", "600", "--seed", "81").then(({ code, output }) => {
      expect([code, output]).toEqual([0, expect.stringContaining("Nothing was found (seed 81)")])
      expect(Number(/^requests: (\d+)$/m.exec(output)?.[1])).toBeGreaterThan(600)
      expect(Number(/^operations that said yes: (\d+)$/m.exec(output)?.[1])).toBeGreaterThan(50)
    }),
  300_000
)

it("a folder without what is to be sent is refused before a server starts", async () => {
  const empty = mkdtempSync(join(quickFolder, "empty-"))
  const nothing = "/nonexistent"
  try {
    const refusals = [
      [[nothing], `${nothing} is no folder`],
      [[import.meta.filename], `${import.meta.filename} is no folder`],
      [[empty], `${empty} has no naughty-strings.json for texts`],
      [[empty, "--only", "files"], `${empty} has no json-test-suite for files`],
      [[empty, nothing], "name one folder, and not 2"]
    ] as const
    for (const [flags, said] of refusals)
      expect(await runHostile("--requests", "1", "--minutes", "1", ...flags)).toEqual({
        code: 2,
        output: `${said}\n`
      })
  } finally {
    rmSync(empty, { recursive: true })
  }
})

it("a run that is stopped takes its server and its data folder with it", async () => {
  const folder = mkdtempSync(join(quickFolder, "stopped-"))
  // Behind a folder that is closed to others a server of root's keeps its cluster elsewhere.
  chmodSync(folder, 0o711)
  const run = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), "--requests", "100000"], {
    env: { ...process.env, TMPDIR: folder },
    stdio: "ignore"
  })
  const ended = new Promise((resolve) => void run.once("close", (_, signal) => resolve(signal)))
  const isServing = () => readdirSync(folder).some((name) => existsSync(join(folder, name, "database.json")))
  try {
    await expect.poll(isServing, { timeout: 100_000 }).toBe(true)
    run.kill("SIGTERM")
    expect([await ended, readdirSync(folder)]).toEqual(["SIGTERM", []])
  } finally {
    run.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  }
}, 300_000)

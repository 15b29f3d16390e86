/**
 * The console as it is shipped, built once for a test run however many files and threads ask for it.
 *
 * It lies in the run's own folder, which ends with the run. Whoever makes the
 * lock builds; the others watch for what it leaves: the console, or its fault.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { inject, vi } from "vitest"

const root = join(import.meta.dirname, "..")

/** Longer than a build takes while all else is tested too. */
const patienceMs = 110_000

/** The folder of the built console. */
export const builtConsole = async (): Promise<string> => {
  const { runFolder } = inject("postgres")
  const folder = join(runFolder, "console")
  const fault = join(runFolder, "console.fault")
  if (isMine(join(runFolder, "console.lock"))) build(folder, fault)
  await vi.waitUntil(() => existsSync(folder) || existsSync(fault), { timeout: patienceMs, interval: 50 })
  if (!existsSync(folder)) throw new Error(`The console could not be built:\n${readFileSync(fault, "utf8")}`)
  return folder
}

/** Of all who ask, one alone makes the folder. */
const isMine = (lock: string): boolean => {
  try {
    mkdirSync(lock)
    return true
  } catch {
    return false
  }
}

/** In a program of its own: under the tests' settings React would be its larger twin for developers. */
const build = (folder: string, fault: string): void => {
  const building = `${folder}.building`
  const { status, stdout, stderr, error } = spawnSync(
    process.execPath,
    [viteProgram, "build", "--outDir", building, "--emptyOutDir", "--logLevel", "error"],
    { cwd: root, env: { ...process.env, NODE_ENV: "production" }, encoding: "utf8" }
  )
  if (status === 0) renameSync(building, folder)
  else writeFileSync(fault, `${error?.message ?? ""}${stdout}${stderr}`)
}

const viteProgram = [
  join(root, "node_modules/vite/bin/vite.js"),
  join(root, "../../node_modules/vite/bin/vite.js")
]
  .filter((file) => existsSync(file))
  .join("")

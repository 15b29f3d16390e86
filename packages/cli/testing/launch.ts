/**
 * The command line as a process of its own, started with Node as npm starts it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

export const launcher = join(dirname(fileURLToPath(import.meta.url)), "..", "bin", "tropism.mjs")

export interface Launched {
  readonly process: ChildProcess
  readonly out: () => string
  readonly error: () => string
  /** The exit code; undefined while it runs or has more to say, null after a signal. */
  readonly code: () => number | null | undefined
}

/** The processes that a process has started. */
export const childrenOf = (pid: number): ReadonlyArray<number> =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number)

export const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}/stat`) && !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))

// Bun puts itself before the PATH under the name of node; npm would find the machine's.
export const nodePath = (process.env["PATH"] ?? "")
  .split(":")
  .filter((folder) => !folder.includes("bun-node"))
  .join(":")

/** Starts it in the root folder, with nothing of this process's environment but the PATH; it is killed with the scope. */
export const launch = (file: string, args: ReadonlyArray<string>, environment: Record<string, string> = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn("node", [file, ...args], {
          cwd: "/",
          env: { PATH: nodePath, HOME: "/nowhere", ...environment }
        })
        const said = { out: "", error: "", code: undefined as number | null | undefined }
        child.stdout.on("data", (text) => (said.out += String(text)))
        child.stderr.on("data", (text) => (said.error += String(text)))
        // All is said only when both streams have ended; who was killed may have left them to a child that lives on.
        child.on("close", (code) => (said.code = code))
        child.on("exit", (_, signal) => {
          if (signal !== null) said.code = null
        })
        return { child, said }
      }),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    ({ child, said }): Launched => ({
      process: child,
      out: () => said.out,
      error: () => said.error,
      code: () => said.code
    })
  )

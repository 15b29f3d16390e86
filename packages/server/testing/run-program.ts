/**
 * A program of the project, run to its end as a person would, for the tests of the programs beside the product.
 */
import { spawn } from "node:child_process"
import { quickFolder } from "./quick-folder.ts"

/** What it ended with, and all that it said on both its outputs. */
export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs a file with Bun; what it makes in the temporary folder lies in a quick one. */
export const runProgram = (path: string, ...flags: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve) => {
    const program = spawn(process.execPath, [path, ...flags], {
      env: { ...process.env, TMPDIR: quickFolder }
    })
    let output = ""
    program.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    program.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
    program.once("close", (code) => resolve({ code, output }))
  })

/**
 * Programs of others that stories let loose on the MCP door: the conformance suite and the inspector.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"

/** What a program answered before it ended, and what it remarked beside that. */
export interface Ended {
  readonly code: number | null
  readonly said: string
  readonly remarks: string
}

const home = join(import.meta.dirname, "../../..")

/** Runs a program of a package under Bun until it ends; it is killed with the story. */
const runScript = (script: string, args: ReadonlyArray<string>): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [join(home, "node_modules", script), ...args], {
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], NO_COLOR: "1" }
    })
    let said = ""
    let remarks = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (remarks += text))
    child.on("close", (code) => resume(Effect.succeed({ code, said, remarks })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Runs every server scenario that a revision requires, and those that it only reports. */
export const runConformance = (url: string, revision: string, outputFolder: string) =>
  runScript("@modelcontextprotocol/conformance/dist/index.js", [
    "server",
    "--url",
    url,
    "--requirements",
    revision,
    "--output-dir",
    outputFolder
  ])

/** Runs one scenario, with nothing beside it. */
export const runScenario = (url: string, revision: string, scenario: string, outputFolder: string) =>
  runScript("@modelcontextprotocol/conformance/dist/index.js", [
    "server",
    "--url",
    url,
    "--spec-version",
    revision,
    "--scenario",
    scenario,
    "--output-dir",
    outputFolder
  ])

/** Asks the inspector's command line to make one request. */
export const runInspector = (url: string, token: string, ...args: ReadonlyArray<string>) =>
  runScript("@modelcontextprotocol/inspector/clients/launcher/build/index.js", [
    "--cli",
    url,
    "--transport",
    "http",
    "--header",
    `Authorization: Bearer ${token}`,
    ...args
  ])

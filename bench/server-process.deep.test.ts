/**
 * Whoever stops a program of the bench leaves neither a server nor its folder behind, whenever that is.
 */
import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect, it } from "vitest"
import { quickFolder } from "../packages/server/testing/quick-folder.ts"

const program = `
  const { startServerProcess } = await import(${JSON.stringify(join(import.meta.dirname, "server-process.ts"))})
  const server = await startServerProcess()
  if (process.env.ENDS === "by itself") {
    const stopped = server.stop()
    console.log("stops")
    await stopped
  } else {
    process.once("SIGINT", () => console.log("was told"))
    console.log("serves")
    await new Promise((resolve) => setTimeout(resolve, 100_000))
  }
`

it.each([
  ["a signal while it ends by itself", "by itself", { stops: "SIGTERM" }, "SIGTERM"],
  // npm passes on what the terminal has already sent to all.
  ["a signal that comes twice", "when told", { serves: "SIGINT", "was told": "SIGINT" }, "SIGINT"]
] as const)(
  "nothing is left by %s",
  async (_, ends, signals, last) => {
    const folder = mkdtempSync(join(quickFolder, "stopped-"))
    // Behind a folder that is closed to others a server of root's keeps its cluster elsewhere.
    chmodSync(folder, 0o711)
    const run = spawn(process.execPath, ["-e", program], {
      env: { ...process.env, TMPDIR: folder, ENDS: ends },
      stdio: ["ignore", "pipe", "ignore"]
    })
    const ended = new Promise((resolve) => void run.once("close", (_code, signal) => resolve(signal)))
    try {
      const sent: Array<string> = []
      for await (const line of createInterface(run.stdout))
        for (const [moment, signal] of Object.entries(signals))
          if (line === moment && run.kill(signal)) sent.push(moment)
      expect([sent, await ended, readdirSync(folder)]).toEqual([Object.keys(signals), last, []])
    } finally {
      run.kill("SIGKILL")
      rmSync(folder, { recursive: true, force: true })
    }
  },
  100_000
)

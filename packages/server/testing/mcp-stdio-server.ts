/**
 * A real MCP server over stdio, as a program of its own: `bun mcp-stdio-server.ts`.
 *
 * `CALLS` names the file in which each start and each call becomes a line of
 * JSON, `OVERLAY` and `GATE` are as `mcp-tools.ts` says. `MODE` lets it
 * misbehave: `garbage` speaks between its messages, `silent` answers nothing,
 * `shy` ends when it is asked something before the handshake, `parent` starts a
 * child, `stubborn` does that and does not go when it is told, `broken`
 * complains and ends at once.
 */
import { spawn } from "node:child_process"
import { appendFileSync } from "node:fs"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { makeStoryServer } from "./mcp-tools.ts"

const { CALLS: calls, GATE: gate, MODE: mode, OVERLAY: overlay, SECRET: secret } = process.env

const note = (line: object) => {
  if (calls !== undefined) appendFileSync(calls, `${JSON.stringify(line)}\n`)
}

note({ started: process.pid, environment: Object.keys(process.env).toSorted() })
console.error(`The story server begins, with ${secret}`)

if (mode === "broken") {
  console.error(`There is no licence for ${secret}`)
  process.kill(process.pid, "SIGKILL")
}

if (mode === "garbage") {
  process.stdout.write("Welcome to the story server!\n[1, 2, 3]\n")
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: 999, result: { surprise: true } })}\n`)
}
// A call that still waits for its gate must not keep a program alive whose reader is gone.
if (mode !== "stubborn") process.stdin.on("end", () => process.kill(process.pid, "SIGKILL"))
else process.on("SIGTERM", () => undefined)
if (mode === "stubborn" || mode === "parent") {
  const child = spawn("sleep", ["600"], { stdio: "ignore" })
  note({ child: child.pid })
  child.ref()
}
if (mode === "silent") process.stdin.resume()
else if (mode === "shy")
  process.stdin.on("data", (chunk: Buffer) => {
    if (chunk.toString().includes("server/discover")) process.kill(process.pid, "SIGKILL")
  })

if (mode !== "silent")
  serveStdio(() => makeStoryServer({ note, overlay, gate, secret: secret ?? "nothing" }), {
    legacy: "serve"
  })

/**
 * Restate: the server that its package ships, with its own store, and a service whose steps are `ctx.run`.
 *
 * A step of the agent is one `ctx.run`, in which the model is asked and the tool
 * is called. Clients come from another process, through Restate's ingress.
 */
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { arch, platform, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as restate from "@restatedev/restate-sdk"
import { nowMs, serveActs, toolCall } from "./acts.ts"

const require = createRequire(import.meta.url)
const binary = createRequire(require.resolve("@restatedev/restate-server/package.json")).resolve(
  `@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`
)

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0))
    })
  })

const agent = restate.service({
  name: "agent",
  handlers: {
    work: async (ctx: restate.Context, steps: number) => {
      for (let step = 0; step < steps; step++)
        await ctx.run("step", () => [{ role: "assistant", calls: [toolCall] }, toolCall.result])
      return "Done."
    }
  }
})

const port = await restate.serve({ services: [agent], port: await freePort() })
const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()]
const folder = await mkdtemp(join(tmpdir(), "tropism-bench-restate-"))

const server = spawn(binary, ["--base-dir", folder, "--no-logo", "--listen-mode", "tcp"], {
  stdio: ["ignore", "ignore", "inherit"],
  env: {
    ...process.env,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${fabric}/`,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_NODE_NAME: "bench",
    RESTATE_DISABLE_TELEMETRY: "true",
    // Nor does it ask whether there is a newer one and tell of it when it cannot.
    RESTATE_LOG_FILTER: "error,octocrab=off"
  }
})

/** Registers the service as soon as the server listens. */
const register = async (): Promise<void> => {
  const deadline = nowMs() + 60_000
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${port}` })
    }).catch(() => undefined)
    if (response?.ok === true) return
    if (nowMs() > deadline || server.exitCode !== null)
      throw new Error(`Restate does not take the service: ${await response?.text()}`)
    await sleep(100)
  }
}

const stop = async (): Promise<void> => {
  const ended = new Promise((resolve) => server.once("exit", resolve))
  if (server.exitCode === null) {
    server.kill("SIGTERM")
    await Promise.race([ended, sleep(5_000)])
    server.kill("SIGKILL")
  }
  await rm(folder, { recursive: true, force: true })
}

await register().catch(async (error: unknown) => {
  await stop()
  throw error
})

serveActs({ address: () => Promise.resolve(`http://127.0.0.1:${ingress}/agent/work`) }, stop)

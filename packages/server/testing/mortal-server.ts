/**
 * The server as a program that kills itself where it is told: `bun mortal-server.ts`.
 *
 * `ACCESS` says how its database is reached. It stands by, loaded and nothing
 * else, until a line `{"serve": true}` on its input. Then it says its address in
 * one line, and each crash point that it passes in another. A line
 * `{name, passing, signal}` lets it die as by `kill -9`, or stand still by SIGSTOP, the
 * n-th time that it passes that point from then on. It ends when its input does, so that it does not outlive a
 * test run that is killed.
 */
import { writeSync } from "node:fs"
import { createInterface } from "node:readline"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Logger, Redacted } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { serveOn } from "../src/main.ts"

const { cluster, embedded, encryptionKeys, ownerUrl, serverUrl, token, version } = JSON.parse(
  process.env["ACCESS"] ?? "{}"
)

/** Written before anything else happens: what a process that dies had in mind to say is lost. */
const say = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`)

let fate: { readonly name: string; passing: number; readonly signal: NodeJS.Signals } | undefined

const hit = (name: string) =>
  Effect.suspend(() => {
    say({ passed: name })
    if (fate?.name !== name) return Effect.void
    fate.passing -= 1
    if (fate.passing > 0) return Effect.void
    const { signal } = fate
    fate = undefined
    process.kill(process.pid, signal)
    return signal === "SIGKILL" ? Effect.never : Effect.void
  })

const program = serveOn(
  {
    ownerUrl: Redacted.make(ownerUrl),
    serverUrl: Redacted.make(serverUrl),
    serverStartupParameters: {},
    embedded,
    version
  },
  {
    host: "127.0.0.1",
    port: 0,
    dataFolder: "/nonexistent",
    encryptionKeys: Redacted.make(encryptionKeys),
    token: Redacted.make(token),
    cluster,
    onReady: ({ loginLink, url }) => Effect.sync(() => say({ url, loginLink }))
  }
).pipe(
  Effect.provideService(CrashPoint, { hit }),
  Effect.scoped,
  Effect.provide([NodeServices.layer, Logger.layer([])])
)

const orders = createInterface({ input: process.stdin })
orders.on("line", (line) => {
  const order = JSON.parse(line)
  if ("serve" in order) return NodeRuntime.runMain(program)
  fate = order
  say({ armed: true })
})
orders.once("close", () => process.kill(process.pid, "SIGKILL"))

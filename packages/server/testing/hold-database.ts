/**
 * A program that starts the embedded PostgreSQL of a folder and holds it until it is ended.
 *
 * Tests run it as a process of its own, because what they ask about is what
 * remains after `kill -9`. It says one line of JSON: what it holds and how long
 * that took, or the reason why it holds nothing. It also ends when its input
 * does, so that it does not outlive a test run that is killed.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Duration, Effect, Logger } from "effect"
import { embedded } from "../src/database/embedded-postgres.ts"

const [dataFolder = "", machineFolder = "/var/lib/tropism"] = process.argv.slice(2)

const say = (line: object) => Console.log(JSON.stringify(line))

const inputEnded = Effect.callback<void>((resume) => {
  process.stdin.once("close", () => resume(Effect.void)).resume()
})

const program = Effect.gen(function* () {
  const [took, postgres] = yield* Effect.timed(embedded({ dataFolder, machineFolder }))
  const { cluster, pid, port, reattached } = postgres
  yield* say({ cluster, pid, port, reattached, tookMs: Math.round(Duration.toMillis(took)) })
  yield* inputEnded
}).pipe(
  Effect.scoped,
  Effect.catchTag("DatabaseUnavailable", ({ message, reason }) => say({ reason, message })),
  Effect.provide([NodeServices.layer, Logger.layer([])])
)

NodeRuntime.runMain(program)

/**
 * Real server processes on one database, each of which dies where the story says.
 */
import { spawn } from "node:child_process"
import { Effect, Redacted, type Scope } from "effect"
import type { ClusterAddress } from "../src/cluster/peers.ts"
import type { CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { mortalProgram } from "./mortal-bundle.ts"
import { type Doors, doorsAt, eventually, type Json, storyKeys, storyToken } from "./platform.ts"

export interface MortalServer extends Doors {
  /** Lets it die the n-th time that it passes a point from now on. */
  readonly dieAt: (name: CrashPointName, passing: number) => Effect.Effect<void>
  /** Lets it stand still the n-th time that it passes a point from now on. */
  readonly freezeAt: (name: CrashPointName, passing: number) => Effect.Effect<void>
  /** Kills it where it stands, as by `kill -9`. */
  readonly kill: Effect.Effect<void>
  /** Lets it stand still, as a machine that is suspended. */
  readonly freeze: Effect.Effect<void>
  /** Lets it go on from where it stood. */
  readonly thaw: Effect.Effect<void>
  /** Asks it to stop in good order. */
  readonly stop: Effect.Effect<void>
  /** Waits until it has died. */
  readonly died: Effect.Effect<void>
  /** The points that it has passed so far, in order. */
  readonly passed: () => ReadonlyArray<CrashPointName>
}

/** Starts a server and waits for its doors; it is killed with the scope. */
export const startMortal = (
  access: PostgresAccess,
  cluster?: ClusterAddress,
  environment: Readonly<Record<string, string>> = {}
): Effect.Effect<MortalServer, never, Scope.Scope> =>
  Effect.flatten(prepareMortal(access, cluster, environment))

/**
 * Loads a server that stands by, unknown to the database, and answers what starts it.
 *
 * **Details** Loading takes most of a start, and can be done while another server works.
 */
export const prepareMortal = (
  access: PostgresAccess,
  cluster?: ClusterAddress,
  environment: Readonly<Record<string, string>> = {}
): Effect.Effect<Effect.Effect<MortalServer>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const state = { text: "", hasEnded: false }
    const script = yield* mortalProgram
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const made = spawn(process.execPath, [script], {
          stdio: ["pipe", "pipe", "inherit"],
          env: {
            ...environment,
            PATH: process.env["PATH"] ?? "",
            // Where Bun keeps what it has translated: without it every start translates all again.
            HOME: process.env["HOME"] ?? "",
            ACCESS: JSON.stringify({
              ownerUrl: Redacted.value(access.ownerUrl),
              serverUrl: Redacted.value(access.serverUrl),
              embedded: access.embedded,
              version: access.version,
              token: storyToken,
              encryptionKeys: storyKeys,
              cluster
            })
          }
        })
        made.stdout.on("data", (part: Buffer) => (state.text += part.toString("utf8")))
        made.on("close", () => (state.hasEnded = true))
        return made
      }),
      (made) => Effect.sync(() => made.kill("SIGKILL"))
    )
    const lines = () =>
      state.text
        .slice(0, state.text.lastIndexOf("\n") + 1)
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    const order = (line: object) => Effect.sync(() => void child.stdin.write(`${JSON.stringify(line)}\n`))
    const saidOnce = (key: string) =>
      eventually(
        Effect.sync(() => lines().find((line) => key in line)),
        (line) => line !== undefined,
        60_000
      )
    const started = ({ loginLink, url }: Json): MortalServer => ({
      ...doorsAt(url, loginLink),
      dieAt: (name, passing) =>
        Effect.andThen(order({ name, passing, signal: "SIGKILL" }), Effect.asVoid(saidOnce("armed"))),
      freezeAt: (name, passing) =>
        Effect.andThen(order({ name, passing, signal: "SIGSTOP" }), Effect.asVoid(saidOnce("armed"))),
      kill: Effect.sync(() => void child.kill("SIGKILL")),
      freeze: Effect.sync(() => void child.kill("SIGSTOP")),
      thaw: Effect.sync(() => void child.kill("SIGCONT")),
      stop: Effect.sync(() => void child.kill("SIGTERM")),
      died: Effect.asVoid(
        eventually(
          Effect.sync(() => state.hasEnded),
          (hasEnded) => hasEnded,
          60_000
        )
      ),
      passed: () => lines().flatMap((line) => line.passed ?? [])
    })
    return Effect.map(Effect.andThen(order({ serve: true }), saidOnce("url")), started)
  })

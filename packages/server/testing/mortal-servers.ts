/**
 * Real server processes on one database, each of which dies where the story says.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Redacted, type Scope } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { type Doors, doorsAt, eventually, storyToken } from "./platform.ts"

const script = fileURLToPath(new URL("mortal-server.ts", import.meta.url))

export interface MortalServer extends Doors {
  /** Lets it die the n-th time that it passes a point from now on. */
  readonly dieAt: (name: CrashPointName, passing: number) => Effect.Effect<void>
  /** Waits until it has died. */
  readonly died: Effect.Effect<void>
  /** The points that it has passed so far, in order. */
  readonly passed: () => ReadonlyArray<CrashPointName>
}

/** Starts a server and waits for its doors; it is killed with the scope. */
export const startMortal = (access: PostgresAccess): Effect.Effect<MortalServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const state = { text: "", hasEnded: false }
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const made = spawn(process.execPath, [script], {
          stdio: ["pipe", "pipe", "inherit"],
          env: {
            PATH: process.env["PATH"] ?? "",
            ACCESS: JSON.stringify({
              ownerUrl: Redacted.value(access.ownerUrl),
              serverUrl: Redacted.value(access.serverUrl),
              version: access.version,
              token: storyToken
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
    const ready = yield* eventually(
      Effect.sync(() => lines().find((line) => "url" in line)),
      (line) => line !== undefined,
      30_000
    )
    return {
      ...doorsAt(ready.url, ready.loginLink),
      dieAt: (name, passing) =>
        Effect.andThen(
          Effect.sync(() => void child.stdin.write(`${JSON.stringify({ name, passing })}\n`)),
          Effect.asVoid(
            eventually(
              Effect.sync(() => lines().some((line) => "armed" in line)),
              (isArmed) => isArmed
            )
          )
        ),
      died: Effect.asVoid(
        eventually(
          Effect.sync(() => state.hasEnded),
          (hasEnded) => hasEnded,
          20_000
        )
      ),
      passed: () => lines().flatMap((line) => line.passed ?? [])
    }
  })

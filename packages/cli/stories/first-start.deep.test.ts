/**
 * The first start on a machine, to the approved suggestion, by the command line alone and the real server.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { invokeWith, until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"

const lockfile = {
  name: "shop",
  version: "1.0.0",
  lockfileVersion: 3,
  packages: {
    "": { name: "shop", version: "1.0.0", license: "MIT", dependencies: { left: "1.0.0", right: "2.0.0" } },
    "node_modules/left": { version: "1.0.0", license: "MIT" },
    "node_modules/right": { version: "2.0.0" }
  }
}

/** Starts the server on any free port and waits until it is ready. */
const startServer = (data: string) =>
  Effect.gen(function* () {
    const server = yield* launch(launcher, ["start", "--json"], {
      TROPISM_DATA: data,
      PORT: "0",
      TROPISM_MODEL: "scripted:default"
    })
    yield* until(() => server.out().includes("\n") || server.code() !== undefined)
    expect(server.error()).toBe("")
    const ready: { readonly url: string; readonly loginLink: string; readonly tokenFile: string } =
      JSON.parse(server.out())
    return { ...server, ...ready }
  })

describe("the first start", () => {
  it.live(
    "leads from an empty folder to an approved suggestion, and stops cleanly",
    () =>
      Effect.gen(function* () {
        const folder = yield* quickDataFolder
        const data = join(folder, "data")
        const server = yield* startServer(data)
        expect(server.tokenFile).toBe(join(data, "token"))
        expect(statSync(server.tokenFile).mode & 0o777).toBe(0o600)
        expect(server.loginLink).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/login\?code=\w{20,}$/)

        const tropism = (...args: ReadonlyArray<string>) =>
          invokeWith({ TROPISM_DATA: data }, ...args, "--url", server.url)
        const records = (...args: ReadonlyArray<string>) =>
          Effect.map(tropism(...args, "--json"), ({ out }) => JSON.parse(out.join("\n")))

        expect((yield* tropism("tasks")).error).toContain("tropism projects create")
        expect((yield* tropism("projects", "create", "Shop")).exitCode).toBe(0)
        const agents = join(launcher, "..", "..", "demo")
        expect(
          (yield* records("agents", "apply", "-f", agents)).map((one: { outcome: string }) => one.outcome)
        ).toEqual(["created", "created", "created"])
        expect(
          (yield* records("agents", "apply", "-f", agents)).map((one: { outcome: string }) => one.outcome)
        ).toEqual(["unchanged", "unchanged", "unchanged"])

        const file = join(folder, "package-lock.json")
        writeFileSync(file, JSON.stringify(lockfile))
        expect(yield* records("import", file)).toMatchObject({
          type: "finished",
          created: 3,
          relationshipsCreated: 2
        })
        expect((yield* tropism("import", file)).out.at(-1)).toMatch(/^\D*\b3\b\D*$/)

        const [task] = yield* records("tasks").pipe(
          Effect.repeat({
            until: (tasks: ReadonlyArray<unknown>) => tasks.length > 0,
            schedule: Schedule.spaced("50 millis")
          })
        )
        expect(task).toMatchObject({ status: "pending", agentName: "licence-review" })
        const approved = yield* tropism("tasks", "approve", String(task.number))
        expect(approved.out).toEqual([
          expect.stringMatching(`\\b${task.number}: Package ${task.target.key} .*\\bupdated\\b.*\\b2\\b`)
        ])
        expect(yield* tropism("tasks", "approve", String(task.number))).toMatchObject({ exitCode: 1 })

        // What was approved has its place in the feed a moment later.
        yield* tropism("explain", "6").pipe(
          Effect.repeat({ until: ({ exitCode }) => exitCode === 0, schedule: Schedule.spaced("50 millis") })
        )
        const event = yield* records("explain", "6", "licence-review").pipe(
          Effect.repeat({
            until: (one: { outcome: string }) => one.outcome !== "waiting",
            schedule: Schedule.spaced("50 millis")
          })
        )
        expect(event).toMatchObject({ outcome: "refused", rule: "selfTriggered" })

        // What works is told as working, with the server and without it.
        const faults = Effect.map(records("doctor"), (findings: ReadonlyArray<{ readonly state: string }>) =>
          findings.filter(({ state }) => state === "fault")
        )
        expect(yield* faults).toEqual([])
        server.process.kill("SIGTERM")
        yield* until(() => server.code() !== undefined)
        expect(yield* faults).toMatchObject([{ check: "server", fix: "tropism start" }])
        expect({ code: server.code(), error: server.error() }).toEqual({ code: 0, error: "" })
      }),
    300_000
  )

  it.live(
    "tells a second start on the same folder who holds it",
    () =>
      Effect.gen(function* () {
        const folder = yield* quickDataFolder
        yield* startServer(folder)
        const token = readFileSync(join(folder, "token"), "utf8")
        const second = yield* launch(launcher, ["start"], { TROPISM_DATA: folder, PORT: "0" })
        yield* until(() => second.code() !== undefined)
        expect(second.code()).toBe(1)
        expect(second.error()).toMatch(/^tropism: [^\n]+\n$/)
        expect(second.error()).toContain(folder)
        expect(readFileSync(join(folder, "token"), "utf8")).toBe(token)
      }),
    300_000
  )
})

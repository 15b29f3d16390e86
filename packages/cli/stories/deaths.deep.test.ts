/**
 * The real server, killed in the middle of its work again and again.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { childrenOf, isAlive, launch, launcher } from "../testing/launch.ts"
import { kill, start } from "../testing/real-server.ts"

const packageCount = 30

/** Every third package states no licence, every fifth runs a script when it is installed. */
const lockfile = {
  name: "shop",
  version: "1.0.0",
  lockfileVersion: 3,
  packages: {
    "": { name: "shop", version: "1.0.0", license: "MIT" },
    ...Object.fromEntries(
      Array.from({ length: packageCount }, (_, index) => [
        `node_modules/p${index}`,
        {
          version: "1.0.0",
          ...(index % 3 === 0 ? {} : { license: "MIT" }),
          ...(index % 5 === 0 ? { hasInstallScript: true } : {})
        }
      ])
    )
  }
}

const count = <A>(items: ReadonlyArray<A>, key: (item: A) => unknown): ReadonlyMap<unknown, number> => {
  const counts = new Map<unknown, number>()
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1)
  return counts
}

/** The events by which objects were created. */
const creationsIn = (events: ReadonlyArray<Record<string, unknown>>) =>
  events.filter((one) => one["type"] === "created" && one["entityType"] === "graphObject")

describe("kill -9 of the server at any moment", () => {
  it.live(
    "leaves every object its one event, every matching event its one entry, every run an end, and nothing twice",
    () =>
      Effect.gen(function* () {
        const folder = yield* quickDataFolder
        const data = join(folder, "data")
        const file = join(folder, "package-lock.json")
        writeFileSync(file, JSON.stringify(lockfile))

        let life = yield* start(data)
        yield* life.tropism("projects", "create", "Shop")
        yield* life.tropism("agents", "apply", "-f", join(launcher, "..", "..", "demo"))
        const [project] = yield* life.all("/api/projects")
        const root = `/api/projects/${String(project?.["id"])}`
        for (const endedBefore of [1, 12, 30]) {
          const importing = yield* Effect.forkChild(Effect.exit(life.tropism("import", file)))
          yield* life.all(`${root}/runs?status=completed`).pipe(
            Effect.repeat({
              until: (runs) => runs.length >= endedBefore,
              schedule: Schedule.spaced("10 millis")
            })
          )
          yield* kill(life.server)
          // It would go on when the server is back, which comes back elsewhere.
          yield* Fiber.interrupt(importing)
          life = yield* start(data)
        }
        yield* life.tropism("import", file)
        const runs = yield* life.all(`${root}/runs`).pipe(
          Effect.repeat({
            until: (found) =>
              found.length === 2 * (packageCount + 1) && found.every((run) => run["completedAt"] !== null),
            schedule: Schedule.spaced("50 millis")
          })
        )
        expect(count(runs, (run) => run["status"])).toEqual(new Map([["completed", 2 * (packageCount + 1)]]))

        const objects = yield* life.all(`${root}/objects`)
        // What the last runs made has its place in the feed a moment later.
        const events = yield* life.all(`${root}/events`).pipe(
          Effect.repeat({
            until: (found) => creationsIn(found).length >= objects.length,
            schedule: Schedule.spaced("50 millis")
          })
        )
        const created = creationsIn(events)
        expect(objects).toHaveLength(packageCount + 1 + 6)
        expect([...count(created, (one) => one["entityId"]).values()].every((times) => times === 1)).toBe(
          true
        )
        expect(created.map((one) => one["entityId"]).toSorted()).toEqual(
          objects.map((one) => one["id"]).toSorted()
        )
        expect(events.map((one) => one["position"])).toEqual(events.map((_, index) => index + 1))

        const tasks = yield* life.all(`${root}/tasks`)
        expect([...count(tasks, (task) => (task["target"] as { key: string }).key).values()]).toEqual(
          Array.from({ length: 10 }, () => 1)
        )
        for (const agent of yield* life.all(`${root}/agents`)) {
          const log = yield* life.all(`${root}/agents/${String(agent["id"])}/processing-log`)
          expect(log).toHaveLength(agent["triggerType"] === "reaction" ? packageCount + 1 : 0)
          expect(log.every((entry) => entry["status"] === "completed")).toBe(true)
          expect(new Set(log.map((entry) => entry["eventId"])).size).toBe(log.length)
        }
        life.server.process.kill("SIGTERM")
        yield* until(() => life.server.code() !== undefined)
        expect(life.server.code()).toBe(0)
      }),
    300_000
  )

  it.live(
    "waits for requests under way when it is told to stop, and for nothing when Ctrl-C is pressed twice",
    () =>
      Effect.gen(function* () {
        const life = yield* start(yield* quickDataFolder)
        const post = (path: string, body: unknown): Promise<Record<string, unknown>> =>
          fetch(life.url + path, {
            method: "POST",
            headers: { authorization: `Bearer ${life.token}`, "content-type": "application/json" },
            body: JSON.stringify(body)
          }).then((answer) => answer.json())
        const project = yield* Effect.promise(() => post("/api/projects", { name: "A story" }))
        const root = `/api/projects/${String(project["id"])}`
        const agent = yield* Effect.promise(() =>
          post(`${root}/agents`, {
            name: "slow",
            prompt: "Wait.",
            flowType: "single",
            triggerType: "manual",
            executionMode: "execute",
            enabled: true,
            tools: [],
            model: {
              provider: "scripted",
              name: "slow",
              script: { rules: [{ say: "Done.", latencyMs: 600_000 }] }
            }
          })
        )
        // Nobody answers this: the server ends before.
        void post(`${root}/agents/${String(agent["id"])}/trigger`, {}).catch(() => undefined)
        yield* life.all(`${root}/runs`).pipe(
          Effect.repeat({
            until: (runs) => runs.some(({ status }) => status === "running"),
            schedule: Schedule.spaced("50 millis")
          })
        )
        // Whoever watches it sees it go.
        const ready = Effect.promise(() => fetch(`${life.url}/ready`).then(({ status }) => status))
        expect(yield* ready).toBe(200)
        life.server.process.kill("SIGTERM")
        yield* ready.pipe(
          Effect.repeat({ until: (status) => status === 503, schedule: Schedule.spaced("20 millis") })
        )
        // A terminal tells the program itself; two signals at the same moment are one, so it is told until it has heard two.
        const [program = 0] = childrenOf(life.server.process.pid ?? 0)
        yield* until(() => {
          if (isAlive(program)) process.kill(program, "SIGINT")
          return life.server.code() !== undefined
        })
        expect(life.server.code()).toBe(1)
      }),
    120_000
  )

  it.live("says in one sentence that the default model cannot be asked, and starts nothing", () =>
    Effect.gen(function* () {
      const data = yield* quickDataFolder
      const server = yield* launch(launcher, ["start"], {
        TROPISM_DATA: data,
        PORT: "0",
        TROPISM_MODEL: "foo"
      })
      yield* until(() => server.code() !== undefined)
      expect(server.code()).toBe(1)
      expect(server.error()).toMatch(/^tropism: [^\n]*\bTROPISM_MODEL\b[^\n]*"foo"[^\n]*\n$/)
    })
  )
})

/**
 * Backups of a real server that people write to: a dump of a project, and a copy of the folder of one that died.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { childrenOf, isAlive } from "../testing/launch.ts"
import { kill, start } from "../testing/real-server.ts"

type Life = Effect.Success<ReturnType<typeof start>>

/** Sends something; undefined where the server went away before it answered. */
const send = (life: Life, path: string, body: unknown) =>
  Effect.promise(() =>
    fetch(life.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${life.token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
      .then((answer) => (answer.ok ? answer.json() : undefined))
      .catch(() => undefined)
  )

/** Writes one person after the other until the server goes away, and notes what was acknowledged. */
const writing = (life: Life, root: string, hand: string, acknowledged: Array<string>) =>
  Effect.gen(function* () {
    for (let number = 0; ; number += 1) {
      const key = `${hand}-${number}`
      const written = yield* send(life, `${root}/objects`, { type: "Person", key, properties: { number } })
      if (written === undefined) return
      acknowledged.push(key)
    }
  })

const keysIn = (life: Life, projectId: string) =>
  Effect.map(
    life.all(`/api/projects/${projectId}/objects?type=Person`),
    (people) => new Set(people.map(({ key }) => String(key)))
  )

const missing = (acknowledged: ReadonlyArray<string>, found: ReadonlySet<string>) =>
  acknowledged.filter((key) => !found.has(key))

/** What a command prints as JSON. */
const told = (life: Life, ...args: ReadonlyArray<string>) =>
  Effect.map(life.tropism(...args, "--json"), ({ error, out }) => {
    expect(error).toBe("")
    return JSON.parse(out.join("\n"))
  })

it.live(
  "hold all that was acknowledged before they began, whole: the dump's agents rest, the copy's go on",
  () =>
    Effect.gen(function* () {
      const folder = yield* quickDataFolder
      const data = join(folder, "data")
      const life = yield* start(data)
      const project = yield* send(life, "/api/projects", { name: "Shop" })
      const root = `/api/projects/${project.id}`
      const agent = yield* send(life, `${root}/agents`, {
        name: "watcher",
        prompt: "Look.",
        triggerType: "reaction",
        executionMode: "execute",
        tools: ["graph.*"],
        reactionConfig: { objectTypes: ["Person"], events: ["created"], concurrencyStrategy: "parallel" },
        model: { provider: "scripted", name: "story", script: { rules: [{ say: "Seen." }] } }
      })
      const acknowledged: Array<string> = []
      const writers = yield* Effect.forEach(["a", "b", "c"], (hand) =>
        Effect.forkScoped(writing(life, root, hand, acknowledged))
      )
      yield* until(() => acknowledged.length >= 30)

      // A dump, while the three go on.
      const beforeDump = [...acknowledged]
      const file = join(folder, "shop.dump")
      yield* told(life, "dump", "--project", "Shop", "-o", file)
      const atDump = acknowledged.length
      yield* until(() => acknowledged.length >= atDump + 30)

      // The machine dies in the middle: the program, and PostgreSQL without a word.
      yield* kill(life.server)
      const postmaster = Number(readFileSync(join(data, "postgres", "postmaster.pid"), "utf8").split("\n")[0])
      const processes = [postmaster, ...childrenOf(postmaster)]
      yield* Effect.sync(() => process.kill(postmaster, "SIGKILL"))
      // Nobody writes any more while the folder is copied.
      yield* until(() => !processes.some(isAlive))
      yield* Effect.forEach(writers, Fiber.join)
      const copied = join(folder, "copy")
      execFileSync("cp", ["-a", data, copied])
      const second = yield* start(copied)
      expect(missing(acknowledged, yield* keysIn(second, project.id))).toEqual([])

      // What was under way goes on, once for each event.
      const people = (yield* keysIn(second, project.id)).size
      const log = yield* second.all(`${root}/agents/${agent.id}/processing-log`).pipe(
        Effect.repeat({
          until: (entries) =>
            entries.length === people && entries.every(({ status }) => status === "completed"),
          schedule: Schedule.spaced("100 millis")
        })
      )
      expect(new Set(log.map(({ eventId }) => eventId)).size).toBe(people)
      expect((yield* told(second, "verify", "--project", project.id)).differenceCount).toBe(0)

      // The dump, in the server that came of the copy.
      const restored = yield* told(second, "restore", file, "--name", "Restored")
      const keys = yield* keysIn(second, restored.project.id)
      expect(missing(beforeDump, keys)).toEqual([])
      expect(keys.size).toBeLessThan(people)
      expect((yield* told(second, "verify", "--project", restored.project.id)).differenceCount).toBe(0)
      const there = `/api/projects/${restored.project.id}`
      const [resting] = yield* second.all(`${there}/agents`)
      expect(resting).toMatchObject({ name: "watcher", enabled: false })
      const runs = (yield* second.all(`${there}/runs`)).length
      yield* send(second, `${there}/objects`, { type: "Person", properties: {} })
      expect(yield* second.all(`${there}/runs`)).toHaveLength(runs)
    }).pipe(Effect.scoped),
  240_000
)

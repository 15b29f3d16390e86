/**
 * A large import whose server is killed again and again, and which goes on by itself.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { freeAddress } from "../../server/testing/cluster-servers.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { kill, start } from "../testing/real-server.ts"

const count = 2_000

/** Objects that no key would find again, and one line that is none. */
const file = [
  ...Array.from({ length: count }, (_, number) => JSON.stringify({ type: "Note", properties: { number } })),
  "nonsense"
].join("\n")

describe("kill -9 of the server while a file is imported", () => {
  it.live(
    "costs no line and makes none twice: the command goes on when the server is back",
    () =>
      Effect.gen(function* () {
        const folder = yield* quickDataFolder
        const data = join(folder, "data")
        const path = join(folder, "notes.jsonl")
        writeFileSync(path, file)

        const port = String((yield* freeAddress).port)
        let life = yield* start(data, port)
        yield* life.tropism("projects", "create", "Notes")
        const [project] = yield* life.all("/api/projects")
        const root = `/api/projects/${String(project?.["id"])}`
        const importing = yield* Effect.forkChild(life.tropism("import", path, "--json"))
        for (const lines of [300, 1_000]) {
          yield* life.all(`${root}/imports`).pipe(
            Effect.repeat({
              until: ([one]) => Number(one?.["lines"] ?? 0) >= lines,
              schedule: Schedule.spaced("10 millis")
            })
          )
          yield* kill(life.server)
          life = yield* start(data, port)
        }
        const { exitCode, out, error } = yield* Fiber.join(importing)
        expect([exitCode, error]).toEqual([1, expect.stringMatching(/\b1\b/)])
        expect(JSON.parse(out.join("\n"))).toMatchObject({
          created: count,
          failed: 1,
          lines: count + 1,
          badLines: [{ line: count + 1 }]
        })

        const objects = yield* life.all(`${root}/objects`)
        const numbers = objects.map((one) => (one["properties"] as { readonly number: number }).number)
        expect(numbers.toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, number) => number)
        )
        expect(yield* life.all(`${root}/imports`)).toMatchObject([
          { status: "finished", name: "notes.jsonl", attempt: expect.any(Number), counts: { created: count } }
        ])
        const events = yield* life
          .all(`${root}/events`)
          .pipe(
            Effect.repeat({ until: (found) => found.length >= count, schedule: Schedule.spaced("50 millis") })
          )
        expect(events.map((one) => one["entityId"]).toSorted()).toEqual(
          objects.map((one) => one["id"]).toSorted()
        )
      }),
    300_000
  )
})

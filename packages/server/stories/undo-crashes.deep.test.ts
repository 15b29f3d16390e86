/**
 * An undo of sixty objects is done whole or not at all, wherever its server dies.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { type Json, newProject, scripted, startServer, storyIn } from "../testing/platform.ts"
import { approve } from "../testing/suggestion-words.ts"
import { acted, undoRun } from "../testing/undo-words.ts"

const objects = 60

const numbers = Array.from({ length: objects }, (_, n) => n)

/** How many of the objects have the agent's value. */
const agentsOf = (items: ReadonlyArray<Json>): number =>
  items.filter(({ properties }) => properties.by === "agent").length

/** A model that changes all of them, as many at a time as a script may call. */
const updatingAll = (made: ReadonlyArray<Json>) =>
  scripted([
    ...numbers
      .filter((n) => n % callsAtOnce === 0)
      .map((first) => ({
        when: `step == ${first / callsAtOnce}`,
        calls: made.slice(first, first + callsAtOnce).map(({ id }) => ({
          tool: "update_object",
          arguments: { objectId: id, properties: { by: "agent" } }
        }))
      })),
    { say: "Done." }
  ])

const callsAtOnce = 20

describe("A server that dies while it undoes", () => {
  it.live.each([
    ["in the middle", "graph.beforeCommit", objects / 2, "pending"],
    ["before the commit", "task.beforeCommit", 1, "pending"],
    ["after the commit", "task.afterCommit", 1, "completed"]
  ] as const satisfies ReadonlyArray<readonly [string, CrashPointName, number, string]>)(
    "S001-N04 has done all of it or nothing: %s",
    ([, point, passing, status]) =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const mortal = yield* startMortal(access)
        const story = yield* newProject(mortal, access)
        const made = yield* Effect.forEach(
          numbers,
          (n) => story.post("/objects", { type: "Note", properties: { n, by: "ada" } }),
          { concurrency: 8 }
        )
        const { run } = yield* acted(story, [], { model: updatingAll(made) })
        const task = (yield* undoRun(story, run)).body
        expect(task.payload.counts.ready).toBe(objects)
        yield* mortal.dieAt(point, passing)
        yield* Effect.exit(approve(story, task, { digest: task.digest }))
        yield* mortal.died

        const there = storyIn(yield* startServer(access), access, story.projectId)
        const notes = Effect.map(there.get("/objects?type=Note&limit=200"), ({ items }) => items)
        expect((yield* there.get(`/tasks/${task.id}`)).status).toBe(status)
        expect(agentsOf(yield* notes)).toBe(status === "pending" ? objects : 0)
        const again = yield* approve(there, task, { digest: task.digest })
        expect(again.status).toBe(status === "pending" ? 200 : 409)
        expect(agentsOf(yield* notes)).toBe(0)
        expect((yield* notes).map(({ version }: Json) => version)).toEqual(numbers.map(() => 3))
      }),
    240_000
  )
})

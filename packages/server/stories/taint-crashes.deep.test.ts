/**
 * Requirement: what was read and that it was untrusted are kept together, whoever dies and whichever server works.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { deliver, listenerWithHook } from "../testing/delivery-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { rawUpdate } from "../testing/raw-writes.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, make, runsOf, silentFor } from "../testing/story-words.ts"
import { begin, isEnded, isRunning, runWhen } from "../testing/sub-agent-words.ts"
import { acting, aLetter, getting, graphHash, noting, readOf } from "../testing/taint-words.ts"
import { by, expectRefused } from "../testing/wall-words.ts"

const notesOf = (story: Story) =>
  Effect.map(story.get("/objects?type=Note"), (page) =>
    page.items.map(({ properties }: Json) => properties.text)
  )

describe("Requirement: Taint outlives its server", () => {
  it.live("a read and its taint are both there or neither, wherever a server dies", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const first = yield* startMortal(access)
        const made = yield* newProject(first, access)
        const letter = yield* aLetter(made)
        const agent = yield* acting(made, "reader", [
          [noting("before"), getting(letter), noting("after")],
          [noting("last")]
        ])
        // The read is made and not committed.
        yield* first.dieAt("tool.beforeCommit", 2)
        const run = yield* begin(made, agent)
        yield* first.died
        // Who starts takes the run over at once: not before it is known where it dies.
        const claims = yield* holding(access, lockOf("claims"))
        const second = yield* startMortal(access)
        // It is committed, and nothing behind it.
        yield* second.dieAt("tool.afterCommit", 1)
        yield* Effect.orDie(claims.query("commit"))
        yield* second.died
        const story = storyIn(yield* startMortal(access), access, made.projectId)
        const ended = yield* runWhen(story, run, isEnded)
        expect(ended).toMatchObject({ status: "completed", taintedBy: [readOf("object", letter.id, "text")] })
        expect((yield* callsOf(story, run)).map(({ decision }) => decision)).toEqual([
          "execute",
          null,
          "suggest",
          "suggest"
        ])
        expect(yield* notesOf(story)).toEqual(["before"])
        const { items: tasks } = yield* story.get("/tasks?status=pending")
        expect(tasks).toHaveLength(2)
        for (const { untrusted } of tasks) expect(untrusted).toEqual(ended.taintedBy)
      })
    )
  )

  it.live("two servers at work on one graph agree", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const [one, other] = [yield* startServer(access), yield* startServer(access)]
        const story = yield* newProject(one, access)
        const there = storyIn(other, access, story.projectId)
        const letter = yield* aLetter(story)
        const agent = yield* acting(story, "reader", [[getting(letter)], [noting("after")]])
        const before = yield* graphHash(story)
        const begun = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, number) => (number % 2 === 0 ? story : there)),
          (door) => begin(door, agent),
          { concurrency: "unbounded" }
        )
        const runs = yield* eventually(
          runsOf(there, agent),
          (all) => all.length === begun.length && all.every(isEnded)
        )
        for (const { taintedBy } of runs) expect(taintedBy).toHaveLength(1)
        expect(yield* graphHash(there)).toBe(before)
      })
    )
  )
})

layer(SharedServer.layer)((it) => {
  describe("Decision: the database refuses what a tainted run may not write", () => {
    it.effect("with the server's own rights, around the gateway", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id: objectId } = yield* make(story, "Person")
        const { agent, hook } = yield* listenerWithHook(
          story,
          { untrusted: true },
          { executionMode: "execute", model: silentFor(600_000) }
        )
        yield* deliver(story, hook, "{}")
        const [run] = yield* eventually(runsOf(story, agent), (runs) => runs.some(isRunning))
        yield* expectRefused(
          story,
          { "an update": rawUpdate({ objectId, ...by(agent, run) }) },
          "has read something untrusted"
        )
      })
    )
  })
})

/**
 * What becomes of a run whose server leaves while it works on it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, storyIn } from "../testing/platform.ts"
import { entriesWhen, make, runsOf, silentFor, watcher } from "../testing/story-words.ts"

describe("A run whose server leaves", () => {
  it.live("has one attempt less, also where a kill switch stops it before another server takes it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const leaving = yield* Scope.make()
        const story = yield* newProject(yield* Scope.provide(startServer(access), leaving), access)
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, ({ status }) => status === "processing")
        yield* Scope.close(leaving, Exit.void)
        const attempts = ask(access, "select status, attempt from kb.agent_runs where project_id = $1", [
          story.projectId
        ])
        expect(yield* attempts).toEqual([["running", 0]])
        yield* ask(access, "insert into kb.kill_switches (reason, stopped_by) values ('A moment', 'ada')")

        const here = storyIn(yield* startServer(access), access, story.projectId)
        yield* eventually(runsOf(here, agent), ([run]) => run.status === "paused")
        expect(yield* attempts).toEqual([["paused", 0]])
        yield* here.send("PUT", "/api/kill-switch", { stopped: false })
        const [run] = yield* eventually(runsOf(here, agent), ([found]) => found.status === "running")
        expect(run.attempt).toBe(1)
      })
    )
  )
})

/**
 * What an attempt may still do whose server stood still so long that another attempt has its run: nothing.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { interposedServer } from "../testing/interposed.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, scripted } from "../testing/platform.ts"
import { endedRuns, entriesOf, make, runsOf, watcher } from "../testing/story-words.ts"

/** Looks once, and thinks about what it saw for as long as a second attempt is to be at work. */
const thinker = scripted([
  { when: "step == 0", calls: [{ tool: "search_objects", arguments: { type: "Person" } }] },
  { latencyMs: 2_000, say: "Seen." }
])

describe("An attempt that has lost its run", () => {
  it.live("does not cancel it for an agent that was disabled meanwhile and is enabled again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const { doors, interpose } = yield* interposedServer(access)
        const story = yield* newProject(doors, access)
        const agent = yield* story.post("/agents", watcher({ model: thinker }))
        const enable = (enabled: boolean) => story.patch(`/agents/${agent.id}`, { enabled })
        // It has just learned that it must not go on, and stands still; the agent may act again, and another attempt does.
        const losing = Effect.gen(function* () {
          yield* enable(true)
          yield* ask(access, "update kb.agent_runs set lease_expires_at = now() where status = 'running'")
          yield* eventually(runsOf(story, agent), ([run]) => run.attempt === 2)
        })
        yield* interpose(
          "run.afterModel",
          Effect.andThen(enable(false), interpose("tool.afterCommit", losing))
        )
        yield* make(story, "Person")

        const [run] = yield* endedRuns(story, agent, 1)
        expect(run).toMatchObject({ status: "completed", summary: "Seen.", attempt: 2, errorMessage: null })
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "completed" }])
      })
    )
  )
})

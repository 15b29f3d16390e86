/**
 * A server that dies while calls of one answer are made side by side: what was begun is repeated where it may be, else unknown.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { holdingServer, reading, resultsRead, writing } from "../testing/held-calls.ts"
import { newCaller } from "../testing/mcp-runs.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { eventually, newProject, storyIn } from "../testing/platform.ts"
import { callsOf } from "../testing/story-words.ts"
import { isEnded, runWhen } from "../testing/sub-agent-words.ts"

describe("Crash: kill -9 while calls are made side by side", () => {
  it.live("repeats the calls that only read, and makes no other one again, wherever the server dies", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const first = yield* startMortal(access)
        const made = yield* newProject(first, access)
        const shop = yield* holdingServer(made, "shop")
        const bank = yield* holdingServer(made, "bank")
        const calls = [
          reading("a"),
          writing("b", "bank"),
          reading("c"),
          writing("d", "bank"),
          writing("e", "bank")
        ]
        const agent = yield* newCaller(made, calls, { tools: ["shop.*", "bank.*"] })
        const run = yield* made.post(`/agents/${agent.id}/trigger?wait=false`, {})
        yield* eventually(
          Effect.sync(() => [...shop.arrived, ...bank.arrived].toSorted()),
          (words) => words.join() === "a,b,c"
        )
        // The outcome of a call that is not made again is kept while others are at work.
        yield* bank.release("b")
        yield* eventually(
          Effect.sync(() => bank.arrived),
          (words) => words.includes("d")
        )
        yield* first.kill
        yield* first.died
        shop.held.splice(0)
        bank.held.splice(0)
        const second = yield* startMortal(access)
        const story = storyIn(second, access, made.projectId)
        yield* shop.release("a", "c")
        yield* bank.release("e")
        expect(yield* runWhen(story, run, isEnded)).toMatchObject({ status: "completed", stepCount: 2 })
        expect(
          (yield* callsOf(story, run)).map(({ arguments: { word }, status }) => `${word} ${status}`)
        ).toEqual(["a completed", "b completed", "c completed", "d unknown", "e completed"])
        expect([shop.arrived.toSorted(), bank.arrived]).toEqual([
          ["a", "a", "c", "c"],
          ["b", "d", "e"]
        ])
        const results = yield* resultsRead(story, run)
        expect(results.map((result) => result.reason ?? result)).toEqual([
          "a.",
          "b.",
          "c.",
          "unknownOutcome",
          "e."
        ])
        expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
      })
    )
  )
})

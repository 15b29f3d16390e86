/**
 * Whom an agent may hand tasks to, and how far.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { limitChains } from "../testing/chain-words.ts"
import { promptWithObject } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  begin,
  boss,
  childrenOf,
  childrenWhen,
  endedInTime,
  handingOver,
  handOver,
  reportsOf,
  runThrough,
  saysAfter,
  spawning,
  spawnsOf,
  worker
} from "../testing/sub-agent-words.ts"
import { saying } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Whom an agent may hand tasks to", () => {
    const refusedWith = (values: RegExp) => ({
      status: "refused",
      decision: "refuse",
      result: { error: expect.stringMatching(values), reason: "notPermitted" }
    })

    it.effect("is named in its definition, by names and patterns; the others are told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const names = ["research-web", "research-books", "researcher", "clerk", "asleep", "gone"]
        for (const name of names) yield* story.post("/agents", worker(name, saying("Done.")))
        const agents = (yield* story.get("/agents")).items
        const idOf = (name: string) => agents.find((agent: { name: string }) => agent.name === name).id
        yield* story.patch(`/agents/${idOf("asleep")}`, { enabled: false })
        yield* story.delete(`/agents/${idOf("gone")}`)
        const asked = ["research-web", "researcher", "clerk", "asleep", "gone", "nobody", "boss"]
        const run = yield* handOver(
          story,
          asked.map((name) => spawning(name)),
          { subAgents: ["research-*", "clerk", "asleep", "gone", "nobody"] }
        )
        const calls = yield* spawnsOf(story, run)
        expect(calls.map((call) => [call.arguments.agent, call.status])).toEqual(
          asked.map((name) => [name, ["research-web", "clerk"].includes(name) ? "completed" : "refused"])
        )
        for (const call of calls.filter(({ status }) => status === "refused"))
          expect(call).toMatchObject(
            refusedWith(new RegExp(`\\b${call.arguments.agent}\\b.*: clerk, research-books, research-web\\b`))
          )
        expect((yield* childrenOf(story, run)).map((child) => child.agentName)).toEqual([
          "research-web",
          "clerk"
        ])
      })
    )

    it.effect("can be asked for, with what each takes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post(
          "/agents",
          worker("geographer", saying("Done."), {
            role: "Knows rivers",
            prompt: "Look at {{ input.river }} from {{ input.year }}."
          })
        )
        yield* story.post("/agents", worker("listener", saying("Done."), { prompt: promptWithObject }))
        yield* story.post("/agents", worker("singer", saying("Done.")))
        const run = yield* handOver(story, [{ tool: "list_agents", arguments: {} }], {
          subAgents: ["geo*", "listener", "singer"]
        })
        expect(reportsOf(run)).toMatchObject([
          {
            result: {
              agents: [
                {
                  name: "geographer",
                  role: "Knows rivers",
                  takes: { task: "text", input: ["river", "year"] }
                },
                { name: "listener", role: null, takes: { task: "text", input: "any data" } },
                { name: "singer", role: null, takes: { task: "text" } }
              ]
            }
          }
        ])
      })
    )

    it.effect("is nobody where the definition names nobody: the tool is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saying("Done.")))
        const run = yield* handOver(story, [spawning("helper")], { subAgents: [] })
        expect(yield* spawnsOf(story, run)).toMatchObject([refusedWith(/\bspawn_agent\b/)])
        expect(yield* childrenOf(story, run)).toEqual([])
      })
    )

    it.effect(`is nobody after ${runLimits.spawnMaxDepth} hand-overs in a row`, () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = handingOver(spawning("again"))
        const agent = yield* story.post("/agents", worker("again", model, { subAgents: ["again"] }))
        const first = yield* runThrough(story, agent)
        const depths: Array<number> = []
        let run = first
        for (const _ of Array.from({ length: runLimits.spawnMaxDepth })) {
          const [child] = yield* childrenOf(story, run)
          depths.push(child.spawnDepth)
          run = child
        }
        expect(depths).toEqual([1, 2, 3])
        expect(yield* spawnsOf(story, run)).toMatchObject([refusedWith(/\b3\b/)])
        expect(yield* childrenOf(story, run)).toEqual([])
        expect(first.status).toBe("completed")
      })
    )

    it.effect("ends at the runs that the chain may have, with the cap's own sentence", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 2 })
        yield* story.post("/agents", worker("helper", saying("Done.")))
        const run = yield* handOver(story, [
          spawning("helper"),
          spawning("helper", { task: "More." }),
          spawning("helper", { task: "Yet more." })
        ])
        expect((yield* spawnsOf(story, run)).map(({ status }) => status)).toEqual([
          "completed",
          "completed",
          "refused"
        ])
        expect((yield* spawnsOf(story, run)).at(-1)).toMatchObject(refusedWith(/\b2\b.*\b2\b/))
      })
    )

    it.effect("ends at the runs that the other agent may have at once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saysAfter(3_000), { maxPendingRuns: 1 }))
        const run = yield* begin(
          story,
          yield* boss(story, [spawning("helper"), spawning("helper", { task: "More." })])
        )
        yield* childrenWhen(story, run, 1)
        const ended = yield* endedInTime(story, run)
        expect(ended.status).toBe("completed")
        expect((yield* spawnsOf(story, run)).map(({ status }) => status)).toEqual(["completed", "refused"])
      })
    )

    it.effect("takes no arguments that the tool does not have, and none out of bounds", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saying("Done.")))
        const run = yield* handOver(story, [
          spawning("helper", { user_id: "root" }),
          spawning("helper", { timeoutMs: 0 }),
          spawning("helper", { task: "" }),
          { tool: "spawn_agent", arguments: {} }
        ])
        expect((yield* spawnsOf(story, run)).map(({ result, status }) => [status, result.reason])).toEqual(
          Array.from({ length: 4 }, () => ["failed", "invalid"])
        )
        expect(yield* childrenOf(story, run)).toEqual([])
      })
    )
  })
})

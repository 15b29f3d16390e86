/**
 * MCP task notifications between two servers: a subscriber on one is notified at once of changes made on the other.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { taskBounds } from "../src/mcp/run-task.ts"
import { type EventMessages, openListening, toldOf } from "../testing/mcp-event-stream.ts"
import { answering, filled, resultOf } from "../testing/mcp-extension-words.ts"
import { eventually, type Json, scripted } from "../testing/platform.ts"
import { answer, asked, asking } from "../testing/question-words.ts"
import { watcher } from "../testing/story-words.ts"
import { approve, creating, reject, suggested } from "../testing/suggestion-words.ts"
import { asWordGoesRound, bothDoors, TwoServers } from "../testing/two-servers.ts"

/** Waits for a notification on the other server that came by wake-up, not by sweep. */
const heardSoon = Effect.fnUntraced(function* (
  stream: EventMessages,
  satisfies: (heard: ReadonlyArray<Json>) => boolean
) {
  const look = Effect.sync(() => stream.heard)
  expect(yield* asWordGoesRound(look, satisfies)).toBeLessThan(taskBounds.sweepIntervalMs)
})

layer(TwoServers.layer)((it) => {
  describe("Who listens to tasks of two servers", () => {
    it.effect("hears of it on whichever server, however the other one came to know", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const { run: done, tasks } = yield* suggested(story, creating("kept"), creating("dropped"))
        const { run } = yield* asked(story, asking("Which?"))
        const stream = yield* openListening(other, { taskIds: [run.id, done.id] })
        yield* stream.until((heard) => toldOf(heard).length === 2)
        yield* answer(story, run, "This one")
        yield* heardSoon(stream, (heard) => toldOf(heard).at(-1)?.[1] === "completed")
        const before = toldOf(stream.heard).length
        yield* approve(story, tasks[0])
        yield* heardSoon(stream, (heard) => toldOf(heard).length > before)
        yield* reject(story, tasks[1])
        yield* heardSoon(stream, (heard) => heard.at(-1).id === 1)
        expect(toldOf(stream.heard).filter(([, status]) => status === "completed")).toHaveLength(2)
        const reviews = stream.heard.filter(
          ({ params }) => params?.taskId === done.id && params.status === "input_required"
        )
        expect(reviews.map(({ params }) => Object.keys(params.inputRequests).length)).toEqual([2, 1])
      })
    )

    it.effect("is told at once, on both servers, that a run goes on which a limit had stopped", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const agent = yield* story.post(
          "/agents",
          watcher({
            name: "halting",
            triggerType: "manual",
            reactionConfig: null,
            maxSteps: 1,
            tools: ["graph.*"],
            model: scripted([
              { when: "tools.size == 0", say: "So far." },
              {
                when: "turn == 1",
                calls: [{ tool: "search_objects", arguments: { type: "T{{ step }}" } }]
              },
              { say: "Late.", latencyMs: 600_000 }
            ])
          })
        )
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        // Whichever server takes it: one that waits hears of the other's work only as the clock goes on.
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "paused")
        const streams = [
          yield* openListening(story, { taskIds: [run.id] }),
          yield* openListening(other, { taskIds: [run.id] })
        ]
        for (const stream of streams) yield* stream.until((heard) => toldOf(heard).length === 1)
        const [asks] = (streams[0]?.heard ?? []).filter(({ method }) => method === "notifications/tasks")
        const [key = ""] = Object.keys(asks.params.inputRequests)
        expect(key).toMatch(/^resume:/)
        yield* answering(story, run, { [key]: filled({ decision: "resume" }) })
        for (const stream of streams) {
          yield* heardSoon(stream, (heard) => toldOf(heard).length === 2)
          expect(toldOf(stream.heard)).toEqual([
            [run.id, "input_required"],
            [run.id, "working"]
          ])
        }
        yield* resultOf(story, "tasks/cancel", { taskId: run.id })
      })
    )
  })
})

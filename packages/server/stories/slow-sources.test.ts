/**
 * Requirement: a source of foreign events that does not answer holds up no other project's, and is heard when it does again.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventSource, sessionSource } from "../testing/mcp-event-source.ts"
import type { Json, Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { addSource, askNow, idsOf, listener, sourcesOf } from "../testing/source-words.ts"
import { runsOf } from "../testing/story-words.ts"
import { externalLimits } from "../src/tools/external-mcp/limits.ts"
import { sourceLimits } from "../src/tools/external-mcp/events.ts"

/** Small steps: no question may run out of time. */
const stepMs = 20

/** A project whose clerk hears events of these names. */
const hearing = Effect.fnUntraced(function* (url: string, names: ReadonlyArray<string>) {
  const story = yield* newStoryHere
  yield* addSource(story, url)
  const mcpEvents = names.map((name) => ({ server: "orders", name }))
  const agent = yield* story.post("/agents", listener({ reactionConfig: { mcpEvents } }))
  return { agent, story }
})

const allListen = (story: Story) =>
  asTimePasses(stepMs, sourcesOf(story), (sources) => sources.every(({ status }) => status === "listening"))

const isOver = (run: Json) => run.completedAt !== null

layer(SharedServer.layer)((it) => {
  describe("A project whose sources do not answer", () => {
    it.effect("has a few questions under way, however often others are asked meanwhile", () =>
      Effect.gen(function* () {
        const slow = yield* eventSource()
        slow.hold()
        const names = Array.from({ length: sourceLimits.concurrentPolls }, (_, index) => `order.${index}`)
        const { story } = yield* hearing(slow.url, names)
        yield* asTimePasses(
          stepMs,
          Effect.sync(() => slow.asked.length),
          (count) => count === sourceLimits.pollsPerProject
        )
        const source = yield* eventSource()
        const quick = yield* hearing(source.url, ["order.placed"])
        yield* allListen(quick.story)
        for (const count of [1, 2, 3, 4]) {
          source.happen(String(count))
          yield* askNow(quick.story)
          yield* asTimePasses(
            stepMs,
            runsOf(quick.story, quick.agent),
            (runs) => runs.length === count && runs.every(isOver)
          )
        }
        expect(slow.asked).toHaveLength(sourceLimits.pollsPerProject)
        slow.letGo()
        yield* allListen(story)
        expect(new Set(slow.asked.map(({ name }) => name))).toEqual(new Set(names))
      })
    )
  })

  describe("A session in which a source answers nothing any more", () => {
    it.effect("is left for a new one, in which what happened is told", () =>
      Effect.gen(function* () {
        const source = yield* sessionSource()
        const { agent, story } = yield* hearing(source.url, ["order.placed"])
        yield* allListen(story)
        for (const id of source.state.known) source.state.frozen.add(id)
        const asked = source.asked()
        yield* askNow(story)
        yield* asTimePasses(stepMs, Effect.sync(source.asked), (count) => count > asked)
        source.happen("1")
        // The question runs out of time; nothing else is under way.
        yield* asTimePasses(
          externalLimits.pollTimeoutMs,
          sourcesOf(story),
          ([one]) => one.status === "failing"
        )
        yield* askNow(story)
        const runs = yield* asTimePasses(
          stepMs,
          runsOf(story, agent),
          (all) => all.length === 1 && all.every(isOver)
        )
        expect(idsOf(runs)).toEqual(["1"])
      })
    )
  })
})

/**
 * Agents that only take back what others did are recognised, in one chain or in many.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chainAtRest, chainOf, linksOf, rootOf } from "../testing/chain-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import { calling, feedOf, make, runsOf, suggestionsOf, watcher } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const onLamps = {
  objectTypes: ["Lamp"],
  events: ["created", "updated"],
  concurrencyStrategy: "parallel",
  ignoreSelfTriggered: false
}

/** An agent that sets a Lamp to a value whenever it has another one, and counts in `seen` when told to. */
const wanting = (story: Story, value: string, overrides: Record<string, unknown> = {}) =>
  story.post(
    "/agents",
    watcher({
      name: `wants-${value}`,
      reactionConfig: onLamps,
      model: scripted([
        {
          when: `step == 0 and input.object.properties.light != "${value}"`,
          calls: [
            {
              tool: "update_object",
              arguments: { objectId: "{{ input.object.id }}", properties: { light: value } }
            }
          ]
        },
        { say: "So it is." }
      ]),
      ...overrides
    })
  )

const oscillates = (agent: Json) => ({
  agentId: agent.id,
  rule: "oscillation",
  reason: naming("light", 5, 2)
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: oscillating values are recognised", () => {
    it.effect(
      "S001-K01 two agents that set a value back and forth are stopped long before the cap of their chain",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const on = yield* wanting(story, "on")
          const off = yield* wanting(story, "off")
          const lamp = yield* make(story, "Lamp", { light: "on" })
          const root = yield* rootOf(story, lamp)
          const chain = yield* eventually(chainAtRest(story, root), ({ stops }) => stops.length > 0)
          const lights = linksOf(chain, "event").map((event) => event.snapshot.properties.light)
          expect(lights).toEqual(["on", "off", "on", "off", "on", "off"])
          const [last] = linksOf(chain, "event").slice(-1)
          expect(last.refusals.toSorted(byAgent)).toEqual([oscillates(on), oscillates(off)].toSorted(byAgent))
          expect(chain.use.depth).toBe(5)
          expect(yield* story.get(`/agents/${on.id}/explain?eventId=${last.id}`)).toMatchObject({
            outcome: "refused",
            rule: "oscillation"
          })
        })
    )

    it.effect(
      "S001-K01 it is seen in the object's history, so changes with a chain of their own each are found too",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const lamp = yield* make(story, "Lamp", { light: "off" })
          const switching = (value: string) =>
            story.post(
              "/agents",
              watcher({
                name: `switch-${value}`,
                triggerType: "manual",
                reactionConfig: null,
                model: calling(updating(lamp, { light: value, count: "{{ turn }}" }))
              })
            )
          const [on, off] = [yield* switching("on"), yield* switching("off")]
          const reader = yield* story.post("/agents", watcher({ name: "reader", reactionConfig: onLamps }))
          for (const agent of [on, off, on, off, on]) yield* story.post(`/agents/${agent.id}/trigger`)
          const feed = yield* feedOf(story, 6)
          expect(new Set(feed.map((event) => event.rootEventId)).size).toBe(6)
          expect(feed.slice(1).map((event) => event.refusals)).toEqual([[], [], [], [], [oscillates(reader)]])
          expect((yield* chainOf(story, feed[5].rootEventId)).stops).toMatchObject([{ rule: "oscillation" }])
          expect(yield* runsOf(story, reader)).toHaveLength(4)

          // What a person says begins the count anew.
          yield* story.patch(`/objects/${lamp.id}`, { properties: { light: "broken" } })
          yield* story.post(`/agents/${off.id}/trigger`)
          yield* story.post(`/agents/${on.id}/trigger`)
          const later = yield* feedOf(story, 9)
          expect(later.slice(6).map((event) => event.refusals)).toEqual([[], [], []])
        })
    )

    it.effect("a value that goes on, and one that a person approves each time, are no oscillation", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const counter = yield* story.post(
          "/agents",
          watcher({
            name: "counter",
            reactionConfig: { ...onLamps, objectTypes: ["Counter"] },
            model: calling({
              tool: "update_object",
              arguments: {
                objectId: "{{ input.object.id }}",
                properties: { count: "{{ input.object.version }}" }
              }
            })
          })
        )
        const counted = yield* rootOf(story, yield* make(story, "Counter"))
        const chain = yield* eventually(chainAtRest(story, counted), ({ stops }) => stops.length > 0)
        expect(chain.stops).toMatchObject([{ agentId: counter.id, rule: "chainDepth" }])

        yield* wanting(story, "on", { executionMode: "suggest" })
        yield* wanting(story, "off", { executionMode: "suggest" })
        const lamp = yield* make(story, "Lamp", { light: "on" })
        for (const _ of Array.from({ length: 7 })) {
          const [task] = yield* suggestionsOf(story, 1)
          expect((yield* approve(story, task)).status).toBe(200)
        }
        const root = yield* rootOf(story, lamp)
        yield* suggestionsOf(story, 1)
        expect((yield* chainOf(story, root)).stops).toEqual([])
      })
    )
  })
})

const byAgent = (a: { readonly agentId: string }, b: { readonly agentId: string }): number =>
  a.agentId < b.agentId ? -1 : 1

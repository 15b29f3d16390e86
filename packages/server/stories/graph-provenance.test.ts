/**
 * Why a value is what it is: from the property back to the root event.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve } from "../testing/suggestion-words.ts"
import { calling, callsOf, endedRuns, feedOf, make, suggestionsOf, watcher } from "../testing/story-words.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

const me = { actorType: "user", actorId: "admin", agentName: null, approvedBy: null }

/** An agent that patches what woke it. */
const patching = (name: string, type: string, properties: Json, more: Json = {}) =>
  watcher({
    name,
    reactionConfig: { objectTypes: [type], events: ["created"] },
    model: calling({
      tool: "update_object",
      arguments: { objectId: "{{ input.object.id }}", properties, ...more }
    })
  })

const propertiesOf = (provenance: Json): ReadonlyArray<string> =>
  provenance.properties.map(({ property }: Json) => property)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The provenance of a property", () => {
    it.effect("is the version that gave it its value, each property by itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const object = yield* story.post("/objects", {
          type: "Package",
          key: "left-pad",
          properties: { license: "MIT", size: 12, deep: { a: 1 }, "odd.name/": null }
        })
        yield* story.patch(`/objects/${object.id}`, { properties: { size: 13, deep: { b: 2 } } })
        yield* story.patch(`/objects/${object.id}`, { properties: { license: "MIT", size: 13, more: true } })
        const { items: history } = yield* story.get(`/objects/${object.id}/history`)
        const provenance = yield* story.get(`/objects/${object.id}/provenance`)
        expect(provenance).toMatchObject({
          objectId: object.id,
          type: "Package",
          key: "left-pad",
          version: 3
        })
        const [third, second, first] = history
        const direct = (property: string, value: Json, version: Json) => ({
          property,
          value,
          removed: false,
          version: version.version,
          ...me,
          toolCall: null,
          task: null,
          rootEventId: version.eventId,
          createdAt: version.createdAt,
          chain: [
            {
              eventId: version.eventId,
              position: expect.any(Number),
              type: version.type,
              entityType: "graphObject",
              objectType: "Package",
              entityId: object.id,
              key: "left-pad",
              version: version.version,
              ...me,
              createdAt: expect.any(String),
              run: null
            }
          ]
        })
        yield* feedOf(story, 3)
        expect((yield* story.get(`/objects/${object.id}/provenance`)).properties).toEqual([
          direct("deep", { a: 1, b: 2 }, second),
          direct("license", "MIT", first),
          direct("more", true, third),
          direct("odd.name/", null, first),
          direct("size", 13, second)
        ])
      })
    )

    it.effect("names run, tool call, model and reasoning, and leads through every agent to the root", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const finder = yield* story.post(
          "/agents",
          watcher({
            name: "finder",
            model: calling({
              tool: "create_object",
              arguments: {
                type: "Finding",
                key: "f-1",
                properties: { about: "{{ input.object.id }}" },
                reasoning: null
              }
            })
          })
        )
        const judge = yield* story.post(
          "/agents",
          patching("judge", "Finding", { verdict: "harmless" }, { reasoning: "I looked.", confidence: 0.75 })
        )
        const person = yield* story.post("/objects", { type: "Person", key: "ada" })
        const [findingRun] = yield* endedRuns(story, finder, 1)
        const [judgingRun] = yield* endedRuns(story, judge, 1)
        const [call] = yield* callsOf(story, judgingRun)
        const [root, found, judged] = yield* feedOf(story, 3)
        const provenance = yield* story.get(`/objects/${found.entityId}/provenance`)
        expect(propertiesOf(provenance)).toEqual(["about", "verdict"])
        expect(provenance.properties[1]).toMatchObject({
          property: "verdict",
          value: "harmless",
          version: 2,
          actorType: "agent",
          actorId: judge.id,
          agentName: "judge",
          approvedBy: null,
          toolCall: { id: call.id, tool: "update_object", reasoning: "I looked.", confidence: 0.75 },
          task: null,
          rootEventId: root.id
        })
        const run = (of: Json, agent: Json) => ({
          id: of.id,
          agentId: agent.id,
          agentName: agent.name,
          agentVersion: 1,
          model: of.model,
          trigger: "reaction",
          triggeredBy: null
        })
        expect(judgingRun.model).toMatch(/^scripted/)
        expect(provenance.properties[1].chain).toMatchObject([
          { eventId: judged.id, type: "updated", key: "f-1", run: run(judgingRun, judge) },
          { eventId: found.id, type: "created", agentName: "finder", run: run(findingRun, finder) },
          { eventId: root.id, type: "created", entityId: person.id, key: "ada", ...me, run: null }
        ])
        // The other value has the same way, from its own event on.
        expect(provenance.properties[0].chain).toEqual(provenance.properties[1].chain.slice(1))
        expect(provenance.properties[0].toolCall).toMatchObject({ reasoning: null, confidence: null })
      })
    )

    it.effect("names the person who approved a suggestion, and the task", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", {
          ...patching("shy", "Person", { title: "Countess" }, { reasoning: "She is one." }),
          executionMode: "suggest"
        })
        const ada = yield* make(story, "Person", { name: "Ada" })
        const [task] = yield* suggestionsOf(story, 1)
        yield* approve(story, task)
        const [run] = yield* endedRuns(story, agent, 1)
        const { properties } = yield* story.get(`/objects/${ada.id}/provenance?property=title`)
        expect(properties).toMatchObject([
          {
            value: "Countess",
            agentName: "shy",
            approvedBy: "admin",
            toolCall: { tool: "update_object", reasoning: "She is one." },
            task: { id: task.id, number: task.number, title: task.title },
            chain: [
              { run: { id: run.id }, approvedBy: "admin" },
              { entityId: ada.id, run: null }
            ]
          }
        ])
      })
    )

    it.effect("ends at the run where a person or a schedule started it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const thing = yield* make(story, "Thing")
        const agent = yield* story.post("/agents", {
          ...watcher(),
          triggerType: "manual",
          reactionConfig: null,
          model: calling({
            tool: "update_object",
            arguments: { objectId: thing.id, properties: { seen: true } }
          })
        })
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const { properties } = yield* story.get(`/objects/${thing.id}/provenance`)
        expect(properties).toMatchObject([
          { property: "seen", chain: [{ run: { id: run.id, trigger: "manual", triggeredBy: "admin" } }] }
        ])
        expect(properties[0].chain).toHaveLength(1)
      })
    )

    it.effect("survives deletion and restoration: who restored an object set none of its values", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", patching("tagger", "Thing", { tag: "blue" }))
        const thing = yield* make(story, "Thing", { size: 1 })
        yield* endedRuns(story, agent, 1)
        expect((yield* story.get(`/objects/${thing.id}/provenance`)).deleted).toBeNull()
        yield* story.delete(`/objects/${thing.id}`)
        const [deletion] = (yield* story.get(`/objects/${thing.id}/history`)).items
        expect(yield* story.get(`/objects/${thing.id}/provenance`)).toMatchObject({
          version: 3,
          deleted: { eventId: deletion.eventId, ...me, runId: null, createdAt: deletion.createdAt },
          properties: [
            { property: "size", value: 1, version: 1 },
            { property: "tag", value: "blue", version: 2 }
          ]
        })
        yield* story.post(`/objects/${thing.id}/restore`)
        yield* endedRuns(story, agent, 2)
        const { version, properties } = yield* story.get(`/objects/${thing.id}/provenance`)
        expect([version, properties.map(({ property, version }: Json) => [property, version])]).toEqual([
          4,
          [
            ["size", 1],
            ["tag", 2]
          ]
        ])
      })
    )

    it.effect(
      "says of one that was removed who removed it, and of one that never was that it never was",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const thing = yield* make(story, "Thing", { license: "MIT", " ": 0 })
          yield* story.patch(`/objects/${thing.id}`, { properties: { license: null } })
          const of = (property: string) =>
            story.get(`/objects/${thing.id}/provenance?property=${encodeURIComponent(property)}`)
          expect((yield* of("license")).properties).toMatchObject([
            { property: "license", removed: true, value: null, version: 2, ...me }
          ])
          expect((yield* of(" ")).properties).toMatchObject([{ property: " ", value: 0, version: 1 }])
          expect(propertiesOf(yield* story.get(`/objects/${thing.id}/provenance`))).toEqual([" "])
          for (const name of ["never", "__proto__", "'"])
            expectProblem(
              yield* story.ask("GET", `/objects/${thing.id}/provenance?property=${encodeURIComponent(name)}`),
              404
            )
          expectProblem(yield* story.ask("GET", `/objects/${nobody}/provenance`), 404)
        })
    )

    it.effect("knows a property by its own name, also by one that every object of the language has", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const thing = yield* make(story, "Thing", { toString: "x" })
        const of = (property: string) => story.get(`/objects/${thing.id}/provenance?property=${property}`)
        expect((yield* of("toString")).properties).toMatchObject([
          { property: "toString", removed: false, value: "x", version: 1 }
        ])
        yield* story.patch(`/objects/${thing.id}`, { properties: { toString: null, valueOf: 1 } })
        expect((yield* of("toString")).properties).toMatchObject([
          { property: "toString", removed: true, value: null, version: 2 }
        ])
        expect(propertiesOf(yield* story.get(`/objects/${thing.id}/provenance`))).toEqual(["valueOf"])
        expectProblem(yield* story.ask("GET", `/objects/${thing.id}/provenance?property=hasOwnProperty`), 404)
      })
    )
  })
})

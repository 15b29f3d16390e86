/**
 * Agents that build on each other's work, and how anybody follows them live.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chainAtRest, linksOf } from "../testing/chain-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { eventually, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, entriesWhen, feedOf, make, runsOf, watcher } from "../testing/story-words.ts"

/** Sets a property of the object that woke the agent and then says what it had seen. */
const setting = (property: string, value: string) =>
  scripted([
    {
      when: "step == 0",
      calls: [
        {
          tool: "update_object",
          arguments: { objectId: "{{ input.object.id }}", properties: { [property]: value } }
        }
      ]
    },
    { say: "{{ input.object.properties | json }}" }
  ])

/** A link of a chain of agents: it waits for one property and sets another. */
const link = (story: Story, name: string, waitsFor: string | null, sets: string, value: string) =>
  story.post(
    "/agents",
    watcher({
      name,
      prompt: promptWithObject,
      model: setting(sets, value),
      reactionConfig: {
        objectTypes: ["Package"],
        events: waitsFor === null ? ["created"] : ["updated"],
        concurrencyStrategy: "queue",
        ...(waitsFor === null
          ? {}
          : {
              where: {
                changedProperties: [waitsFor],
                properties: [{ property: waitsFor, op: "exists", value: true }]
              }
            })
      }
    })
  )

layer(SharedServer.layer)((it) => {
  describe("Non-goal, future: complex dependency chains between agents", () => {
    it.effect("S001-N01, F06 an agent waits for another's work by the property that it leaves behind", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // In the order of their ids the last comes first: the order of the work is that of the conditions.
        const third = yield* link(
          story,
          "reporter",
          "risk",
          "report",
          "risk {{ input.object.properties.risk }}"
        )
        const second = yield* link(
          story,
          "assessor",
          "license",
          "risk",
          "of {{ input.object.properties.license }}"
        )
        const first = yield* link(story, "licenser", null, "license", "MIT")
        const found = yield* make(story, "Package", { name: "left-pad" })
        const events = yield* feedOf(story, 4)
        expect(events.map((event) => [event.depth, event.actorId])).toEqual([
          [0, expect.any(String)],
          [1, first.id],
          [2, second.id],
          [3, third.id]
        ])
        const [report] = yield* endedRuns(story, third, 1)
        expect(JSON.parse(report.summary)).toEqual({ name: "left-pad", license: "MIT", risk: "of MIT" })
        expect(yield* story.get(`/objects/${found.id}`)).toMatchObject({
          properties: { name: "left-pad", license: "MIT", risk: "of MIT", report: "risk of MIT" }
        })
        const chain = yield* chainAtRest(story, events[0].id)
        expect(linksOf(chain, "run").map((run) => run.agentId)).toEqual([first.id, second.id, third.id])
        for (const [agent, at] of [
          [second, 0],
          [third, 1]
        ] as const)
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${events[at].id}`)).toMatchObject({
            outcome: "refused"
          })
      })
    )

    it.effect("S001-F06 work that is done twice is built upon twice, each time in its order", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* link(story, "licenser", null, "license", "MIT")
        const second = yield* link(
          story,
          "assessor",
          "license",
          "risk",
          "of {{ input.object.properties.license }}"
        )
        const found = yield* make(story, "Package")
        yield* entriesWhen(story, second, 1)
        yield* story.patch(`/objects/${found.id}`, { properties: { license: "GPL" } })
        const runs = yield* endedRuns(story, second, 2)
        expect(runs.map((run) => JSON.parse(run.summary).license)).toEqual(["MIT", "GPL"])
        expect(yield* story.get(`/objects/${found.id}`)).toMatchObject({ properties: { risk: "of GPL" } })
      })
    )
  })

  describe("Non-goal, future: real-time streaming of agent progress", () => {
    it.effect("S001-N02, F07 whoever listens to a run hears each step while the agent is at work", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const slowly = scripted([
          { when: "step == 0", latencyMs: 60_000, calls: [{ tool: "search_objects", arguments: {} }] },
          { say: "Nothing else to do.", latencyMs: 60_000 }
        ])
        const agent = yield* story.post("/agents", watcher({ model: slowly }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        const [run] = yield* runsOf(story, agent)
        const stream = yield* openStream(
          story,
          `/api/projects/${story.projectId}/runs/${run.id}/events?after=start`
        )
        const names = (heard: typeof stream.heard) => heard.map((event) => event.json.type)

        yield* stream.until((heard) => names(heard).includes("AgentTurnStartedEvent"))
        expect(names(stream.heard)).not.toContain("ToolCallCompletedEvent")
        // In small portions, so that the minute of the second step does not pass as well before the stream is heard.
        yield* asTimePasses(
          2_000,
          Effect.sync(() => names(stream.heard)),
          (heard) => heard.includes("ToolCallCompletedEvent")
        )
        // The tool's answer is heard while the run is still at work.
        const [still] = yield* runsOf(story, agent)
        expect([still.status, names(stream.heard).includes("AgentTurnCompletedEvent")]).toEqual([
          "running",
          false
        ])
        yield* asTimePasses(
          60_000,
          Effect.sync(() => names(stream.heard)),
          (heard) => heard.includes("AgentTurnCompletedEvent")
        )
        const [ended] = yield* eventually(runsOf(story, agent), ([seen]) => seen.completedAt !== null)
        expect(ended).toMatchObject({ status: "completed", summary: "Nothing else to do." })
        // Nothing was missed and nothing came twice: the stream is the log.
        const { items } = yield* story.get(`/runs/${run.id}/events?limit=200`)
        const logged = stream.heard.filter((event) => event.id !== undefined)
        expect(logged.map((event) => event.json.id)).toEqual(items.map((event: { id: string }) => event.id))
      }).pipe(Effect.scoped)
    )
  })
})

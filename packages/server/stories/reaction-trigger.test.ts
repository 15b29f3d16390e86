/**
 * Which events of the graph wake which agents.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import type { Json } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  agentsOf,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

const allEvents = ["created", "updated", "deleted"]

layer(SharedServer.layer)((it) => {
  describe("Requirement: Reaction Trigger Type", () => {
    it.effect(
      "S000-R01 a reaction agent runs when a graph object changes, a manual or schedule agent does not",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const reaction = yield* story.post("/agents", watcher())
          const manual = yield* story.post("/agents", watcher({ name: "by-hand", triggerType: "manual" }))
          const schedule = yield* story.post(
            "/agents",
            watcher({ name: "yearly", triggerType: "schedule", cronSchedule: "0 0 1 1 *" })
          )
          const person = yield* make(story, "Person")
          const [event] = yield* feedOf(story, 1)
          const [run] = yield* endedRuns(story, reaction, 1)
          expect(run).toMatchObject({
            status: "completed",
            trigger: {
              type: "reaction",
              events: [
                { id: event.id, type: "created", objectId: person.id, objectType: "Person", version: 1 }
              ]
            }
          })
          const byHand = yield* story.post(`/agents/${manual.id}/trigger`)
          expect(byHand).toMatchObject({ status: "completed", trigger: { type: "manual" } })
          expect(yield* runsOf(story, manual)).toHaveLength(1)
          expect(yield* runsOf(story, schedule)).toEqual([])
        })
    )

    it.effect(
      "S000-R01 S001-R46 a prompt that speaks of nothing that happened is given the event and the object before it, as data",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const prompt = "Say who it is."
          const told = (agent: Json) =>
            Effect.gen(function* () {
              const [run] = yield* endedRuns(story, agent, 1)
              const { request } = yield* story.get(`/runs/${run.id}/model-calls/1`)
              const texts: ReadonlyArray<string> = request.messages.map(({ content }: Json) => content)
              const fenced = texts.flatMap((text) => /^```json\n([^]*)\n```$/.exec(text)?.[1] ?? [])
              return { texts, data: fenced.map((text) => JSON.parse(text)) }
            })
          const silent = yield* story.post("/agents", watcher({ prompt }))
          const batched = yield* story.post(
            "/agents",
            watcher({
              name: "batched",
              prompt,
              reactionConfig: {
                objectTypes: ["Person"],
                events: ["created"],
                batchSize: 2,
                maxWaitMs: 60_000
              }
            })
          )
          const related = yield* story.post(
            "/agents",
            watcher({
              name: "related",
              prompt,
              reactionConfig: { objectTypes: ["None"], relationshipTypes: ["knows"], events: ["created"] }
            })
          )
          const speaking = yield* story.post(
            "/agents",
            watcher({ name: "speaking", prompt: "Look at {{ event.objectId }}." })
          )
          const ada = yield* make(story, "Person", { name: "Ada" })
          const [event] = yield* feedOf(story, 1)
          const one = yield* told(silent)
          expect(one.texts.at(-1)).toBe(prompt)
          expect(one.data).toEqual([
            {
              event: expect.objectContaining({ id: event.id, type: "created", objectId: ada.id, version: 1 }),
              object: expect.objectContaining({ id: ada.id, properties: { name: "Ada" } })
            }
          ])
          expect(yield* told(speaking)).toEqual({ texts: [`Look at ${ada.id}.`], data: [] })
          const bob = yield* make(story, "Person", { name: "Bob" })
          const many = yield* told(batched)
          expect(many.data).toMatchObject([
            { events: [{ objectId: ada.id }, { objectId: bob.id }], object: { properties: { name: "Bob" } } }
          ])
          const knows = yield* story.post("/relationships", { type: "knows", fromId: ada.id, toId: bob.id })
          expect((yield* told(related)).data).toMatchObject([
            { event: { entityType: "relationship" }, relationship: { id: knows.id, type: "knows" } }
          ])
          // By hand nothing happened: there is nothing to tell.
          const byHand = yield* story.post(
            "/agents",
            watcher({ name: "by-hand", prompt, triggerType: "manual" })
          )
          yield* story.post(`/agents/${byHand.id}/trigger`)
          expect(yield* told(byHand)).toEqual({ texts: [prompt], data: [] })
        })
    )

    it.effect(
      "S000-R02 an agent created with the trigger reaction must have a valid reaction configuration",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const refused = [
            [undefined, "/reactionConfig"],
            [null, "/reactionConfig"],
            [{}, "/reactionConfig/objectTypes"],
            [{ objectTypes: ["Person"] }, "/reactionConfig/events"],
            [{ events: ["created"] }, "/reactionConfig/objectTypes"],
            [{ objectTypes: ["Person"], events: [] }, "/reactionConfig/events"],
            [{ objectTypes: ["Person"], events: ["renamed"] }, "/reactionConfig/events/0"],
            [{ objectTypes: "Person", events: ["created"] }, "/reactionConfig/objectTypes"],
            [{ objectTypes: ["no such type!"], events: ["created"] }, "/reactionConfig/objectTypes/0"]
          ] as const
          for (const [reactionConfig, pointer] of refused) {
            const answer = yield* story.ask("POST", "/agents", watcher({ reactionConfig }))
            expect([reactionConfig, answer.status, answer.body.errors?.[0]?.pointer]).toEqual([
              reactionConfig,
              422,
              pointer
            ])
          }
          expect(yield* agentsOf(story)).toEqual([])
          expect(yield* story.post("/agents", watcher())).toMatchObject({
            triggerType: "reaction",
            reactionConfig: { objectTypes: ["Person"], events: ["created"] }
          })
        })
    )

    it.effect("S000-R02 an agent becomes a reaction agent, and stays one, only with a configuration", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
        const path = `/agents/${agent.id}`
        const bare = yield* story.ask("PATCH", path, { triggerType: "reaction" })
        expect([bare.status, bare.body.errors[0].pointer]).toEqual([422, "/reactionConfig"])
        expect(yield* story.get(path)).toEqual(agent)

        const reactionConfig = { objectTypes: ["Person"], events: ["created"] }
        yield* story.patch(path, { triggerType: "reaction", reactionConfig })
        expect((yield* story.ask("PATCH", path, { reactionConfig: null })).status).toBe(422)
        expect(yield* story.get(path)).toMatchObject({ triggerType: "reaction", reactionConfig, version: 2 })
        yield* make(story, "Person")
        expect(yield* endedRuns(story, agent, 1)).toHaveLength(1)
      })
    )

    it.effect(
      "S000-R03, R04 an agent for Person is not triggered by a Company and is triggered by a Person",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          yield* make(story, "Company")
          const person = yield* make(story, "Person")
          const [ofCompany] = yield* feedOf(story, 2)
          const entries = yield* entriesWhen(story, agent, 1)
          expect(entries.map((entry) => entry.graphObjectId)).toEqual([person.id])
          expect(yield* runsOf(story, agent)).toHaveLength(1)
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${ofCompany.id}`)).toMatchObject({
            outcome: "refused",
            rule: "objectType"
          })
        })
    )

    it.effect(
      "S000-R05, R06 an agent for created is not triggered by an update and is triggered by a create",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          const person = yield* make(story, "Person")
          yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada" } })
          const [, ofUpdate] = yield* feedOf(story, 2)
          const entries = yield* entriesWhen(story, agent, 1)
          expect(entries.map((entry) => [entry.eventType, entry.objectVersion])).toEqual([["created", 1]])
          expect(yield* runsOf(story, agent)).toHaveLength(1)
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${ofUpdate.id}`)).toMatchObject({
            outcome: "refused",
            rule: "eventType"
          })
        })
    )
  })

  describe("Goal: agents react to what happens to graph objects", () => {
    it.effect(
      "S001-R01, R02, R03 an agent reacts to create, update and delete, and sees the object as it was",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({
              reactionConfig: { objectTypes: ["Person"], events: allEvents },
              model: saying("{{ input.event.type }} {{ input.object.properties.name }}")
            })
          )
          const person = yield* make(story, "Person", { name: "Ada" })
          yield* endedRuns(story, agent, 1)
          yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada L." } })
          yield* endedRuns(story, agent, 2)
          expect((yield* story.delete(`/objects/${person.id}`)).status).toBe(204)
          const runs = yield* endedRuns(story, agent, 3)
          expect(runs.map((run) => run.summary)).toEqual(["created Ada", "updated Ada L.", "deleted Ada L."])
          const entries = yield* entriesOf(story, agent)
          expect(entries.map((entry) => [entry.eventType, entry.objectVersion, entry.status])).toEqual([
            ["created", 1, "completed"],
            ["updated", 2, "completed"],
            ["deleted", 3, "completed"]
          ])
        })
    )

    it.effect("S001-R48 an agent whose objectTypes are empty reacts to objects of all types", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ reactionConfig: { objectTypes: [], events: ["created"] } })
        )
        yield* Effect.forEach(["Person", "Company", "Never.Heard-Of_It"], (type) => make(story, type))
        const runs = yield* endedRuns(story, agent, 3)
        expect(runs.map((run) => run.trigger.events[0].objectType).toSorted()).toEqual([
          "Company",
          "Never.Heard-Of_It",
          "Person"
        ])
      })
    )

    it.effect("S001-R49 an agent reacts to exactly the events that its configuration names", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const subsets = [["created"], ["updated"], ["deleted"], ["created", "deleted"], allEvents]
        const agents = yield* Effect.forEach(subsets, (events, index) =>
          story.post(
            "/agents",
            watcher({
              name: `watcher-${index}`,
              reactionConfig: { objectTypes: ["Person"], events, concurrencyStrategy: "parallel" }
            })
          )
        )
        const person = yield* make(story, "Person")
        yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada" } })
        yield* story.delete(`/objects/${person.id}`)
        yield* feedOf(story, 3)
        const heard = yield* Effect.forEach(agents, (agent) =>
          Effect.map(entriesOf(story, agent), (entries) => entries.map((entry) => entry.eventType))
        )
        expect(heard).toEqual(subsets)
      })
    )

    it.effect(
      "S001-R46 of several agents those that match get an entry and a run each, the others nothing",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const define = (name: string, objectTypes: ReadonlyArray<string>, events: ReadonlyArray<string>) =>
            story.post("/agents", watcher({ name, reactionConfig: { objectTypes, events } }))
          const matching = [
            yield* define("one", ["Person"], ["created"]),
            yield* define("two", ["Company", "Person"], ["created", "updated"])
          ]
          const others = [
            yield* define("other-type", ["Company"], ["created"]),
            yield* define("other-event", ["Person"], ["deleted"])
          ]
          const person = yield* make(story, "Person")
          const [event] = yield* feedOf(story, 1)
          for (const agent of matching) {
            const [run] = yield* endedRuns(story, agent, 1)
            expect(yield* entriesOf(story, agent)).toEqual([
              expect.objectContaining({ graphObjectId: person.id, eventId: event.id, runId: run.id })
            ])
          }
          for (const agent of others) {
            expect(yield* entriesOf(story, agent)).toEqual([])
            expect(yield* runsOf(story, agent)).toEqual([])
          }
        })
    )

    it.effect("S001-R47 only events of graph objects wake reaction agents, not those of relationships", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ reactionConfig: { objectTypes: [], events: allEvents } })
        )
        const [ada, acme] = [yield* make(story, "Person"), yield* make(story, "Company")]
        const related = yield* story.post("/relationships", {
          type: "WORKS_AT",
          fromId: ada.id,
          toId: acme.id
        })
        expect((yield* story.delete(`/relationships/${related.id}`)).status).toBe(204)
        const feed = yield* feedOf(story, 4)
        expect(feed.map((event) => [event.entityType, event.type])).toEqual([
          ["graphObject", "created"],
          ["graphObject", "created"],
          ["relationship", "created"],
          ["relationship", "deleted"]
        ])
        const entries = yield* entriesWhen(story, agent, 2)
        expect(entries.map((entry) => entry.graphObjectId)).toEqual([ada.id, acme.id])
        expect(yield* runsOf(story, agent)).toHaveLength(2)
        expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${feed[2].id}`)).toMatchObject({
          outcome: "refused",
          rule: "relationshipType"
        })
      })
    )

    it.effect("S001-N03 an agent never reacts to an event of another project", () =>
      Effect.gen(function* () {
        const [here, elsewhere] = [yield* newStoryHere, yield* newStoryHere]
        const everything = watcher({ reactionConfig: { objectTypes: [], events: allEvents } })
        const agent = yield* elsewhere.post("/agents", everything)
        const control = yield* here.post("/agents", everything)
        yield* make(here, "Person")
        yield* feedOf(here, 1)
        yield* endedRuns(here, control, 1)
        expect(yield* entriesOf(elsewhere, agent)).toEqual([])
        expect(yield* runsOf(elsewhere, agent)).toEqual([])
        expect(yield* feedOf(elsewhere, 0)).toEqual([])
      })
    )

    it.effect("S001-N03 a project whose events cannot be dispatched does not hold up the others", () =>
      Effect.gen(function* () {
        const { log } = yield* SharedServer
        const [broken, healthy] = [yield* newStoryHere, yield* newStoryHere]
        const agents = yield* Effect.forEach([broken, healthy], (story) => story.post("/agents", watcher()))
        const [config] = yield* ask(broken.access, "select reaction_config from kb.agents where id = $1", [
          agents[0].id
        ])
        const setConfig = (value: unknown) =>
          ask(broken.access, "update kb.agents set reaction_config = $2::text::jsonb where id = $1", [
            agents[0].id,
            JSON.stringify(value)
          ])
        yield* setConfig("nonsense")
        yield* make(broken, "Person")
        yield* make(healthy, "Person")
        yield* endedRuns(healthy, agents[1], 1)
        expect(yield* feedOf(broken, 0)).toEqual([])
        expect(JSON.stringify(log.filter(({ level }) => level === "Error"))).toContain(broken.projectId)

        // Nothing is lost: once it can be dispatched, the next look has it done.
        yield* setConfig(config?.[0])
        yield* asTimePasses(1_000, runsOf(broken, agents[0]), (runs) => runs.length === 1)
        yield* endedRuns(broken, agents[0], 1)
      })
    )
  })

  describe("Decision: fire and forget", () => {
    it.effect(
      "S001-R44, R45 a change is answered before the agent ends, which runs after the event is kept",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          // The clock of this server stands still, so the agent cannot end before anybody's answer.
          const agent = yield* story.post("/agents", watcher({ model: silentFor(60_000) }))
          const person = yield* make(story, "Person", { name: "Ada" })
          expect(person).toMatchObject({ version: 1, properties: { name: "Ada" } })
          const [event] = yield* feedOf(story, 1)
          const entries = yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
          expect(new Date(entries[0].startedAt) >= new Date(event.createdAt)).toBe(true)
          const updated = yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada L." } })
          expect(updated.version).toBe(2)
          expect(yield* runsOf(story, agent)).toMatchObject([{ status: "running", completedAt: null }])
        })
    )
  })

  describe("An agent that is switched off", () => {
    it.effect("S000-R04 is not woken while it is disabled, and enabling it replays nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ enabled: false }))
        yield* make(story, "Person", { name: "before" })
        yield* feedOf(story, 1)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        const during = yield* make(story, "Person", { name: "during" })
        yield* entriesWhen(story, agent, 1)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        yield* make(story, "Person", { name: "after" })
        yield* feedOf(story, 3)
        expect((yield* entriesOf(story, agent)).map((entry) => entry.graphObjectId)).toEqual([during.id])
      })
    )

    it.effect("S001-R58 stops reacting when its trigger is set back to manual", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        const before = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1)
        yield* story.patch(`/agents/${agent.id}`, { triggerType: "manual" })
        yield* make(story, "Person")
        const [, after] = yield* feedOf(story, 2)
        expect((yield* entriesOf(story, agent)).map((entry) => entry.graphObjectId)).toEqual([before.id])
        expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${after.id}`)).toMatchObject({
          outcome: "refused",
          rule: "triggerType"
        })
      })
    )
  })
})

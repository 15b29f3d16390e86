/**
 * For any event and any agent there is an answer why it did or did not wake.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  calling,
  endedRuns,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const explain = (story: Story, agent: Json, event: Json): Effect.Effect<Json> =>
  story.get(`/agents/${agent.id}/explain?eventId=${event.id}`)

/** What is said of each agent that the story made, by its name. */
const explainAll = (story: Story, event: Json): Effect.Effect<Json> =>
  Effect.map(story.get(`/events/${event.id}/explanations`), ({ items }) =>
    Object.fromEntries(
      items.filter((one: Json) => one.agentName !== "TodoAssistant").map((one: Json) => [one.agentName, one])
    )
  )

layer(SharedServer.layer)((it) => {
  describe("Decision: whoever was not woken can be told why", () => {
    it.effect(
      "S001-K01 one event is explained to every agent, with the rule and the values that decided it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const on = (reactionConfig: Record<string, unknown>) => ({
            reactionConfig: { objectTypes: ["Note"], events: ["created"], ...reactionConfig }
          })
          const define = (name: string, overrides: Record<string, unknown> = {}) =>
            story.post("/agents", watcher({ name, ...on({}), ...overrides }))
          const writer = yield* define("writer", {
            reactionConfig: { objectTypes: ["Start", "Note"], events: ["created"] },
            model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } })
          })
          const reader = yield* define("reader")
          yield* define("other-type", on({ objectTypes: ["Person", "Company"] }))
          yield* define("other-event", on({ events: ["updated", "deleted"] }))
          yield* define("deaf-to-agents", on({ ignoreAgentTriggered: true }))
          yield* define("by-hand", { triggerType: "manual", reactionConfig: null })
          yield* define("asleep", { enabled: false })
          yield* make(story, "Start")
          const [ofStart, ofNote] = yield* feedOf(story, 2)
          const [run] = yield* endedRuns(story, reader, 1)
          const told = yield* explainAll(story, ofNote)
          const refused = (rule: string, values = /\S/) => ({
            outcome: "refused",
            rule,
            reason: expect.stringMatching(values),
            entry: null,
            run: null
          })
          expect(told).toMatchObject({
            reader: {
              outcome: "woke",
              rule: null,
              reason: expect.any(String),
              entry: { status: "completed", runId: run.id },
              run: { id: run.id, status: "completed" },
              agentVersion: 1
            },
            writer: refused("selfTriggered"),
            "other-type": refused("objectType", /Note\b.*Person, Company/),
            "other-event": refused("eventType", /created\b.*updated, deleted/),
            "deaf-to-agents": refused("agentTriggered"),
            "by-hand": refused("triggerType", /\bmanual\b/),
            asleep: refused("disabled")
          })
          expect(Object.keys(told)).toHaveLength(7)
          for (const agent of [writer, reader])
            expect(yield* explain(story, agent, ofNote)).toEqual(told[agent.name])
          expect((yield* explainAll(story, ofStart)).writer).toMatchObject({ outcome: "woke" })
        })
    )

    it.effect("what waits or was skipped is told with its reason", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            model: silentFor(60_000),
            reactionConfig: { objectTypes: ["Person"], events: ["created", "updated"] }
          })
        )
        const person = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada" } })
        const [ofCreate, ofUpdate] = yield* feedOf(story, 2)
        expect(yield* explain(story, agent, ofCreate)).toMatchObject({
          outcome: "woke",
          run: { status: "running" }
        })
        expect(yield* explain(story, agent, ofUpdate)).toMatchObject({
          outcome: "skipped",
          reason: expect.any(String),
          run: null
        })
      })
    )

    it.effect("what waits is told with the rule that lets it wait, and until when", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const define = (name: string, reactionConfig: Record<string, unknown>) =>
          story.post(
            "/agents",
            watcher({
              name,
              model: silentFor(60_000),
              reactionConfig: { objectTypes: ["Person"], events: ["created", "updated"], ...reactionConfig }
            })
          )
        yield* define("debounced", { debounceMs: 60_000 })
        yield* define("batched", { batchSize: 10, maxWaitMs: 60_000 })
        const queued = yield* define("queued", { concurrencyStrategy: "queue" })
        yield* define("limited", {
          rateLimit: { maxRuns: 1, perSeconds: 3_600 },
          concurrencyStrategy: "parallel"
        })
        const single = yield* define("single", { maxConcurrency: 1, concurrencyStrategy: "parallel" })
        const person = yield* make(story, "Person")
        for (const agent of [queued, single])
          yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada" } })
        const [, ofUpdate] = yield* feedOf(story, 2)
        const waits = (values: RegExp) => ({
          outcome: "waiting",
          rule: null,
          reason: expect.stringMatching(values),
          entry: { status: "pending" },
          run: null
        })
        // The releaser says why after it has looked.
        const told = yield* eventually(
          explainAll(story, ofUpdate),
          (all) => all.limited.reason.includes("rateLimit") && all.single.reason.includes("maxConcurrency")
        )
        expect(told).toMatchObject({
          debounced: waits(/debounceMs.*\b20\d\d-/),
          batched: waits(/batchSize/),
          queued: waits(/\S/),
          limited: waits(/rateLimit/),
          single: waits(/maxConcurrency/)
        })
      })
    )

    it.effect("where every agent of the project is stopped, that is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        const stop = { stopped: true, reason: "Something is wrong" }
        yield* story.ask("PUT", "/kill-switch", stop)
        yield* make(story, "Person")
        const [event] = yield* feedOf(story, 1)
        expect(yield* explain(story, agent, event)).toMatchObject({
          outcome: "waiting",
          reason: expect.any(String)
        })
        yield* story.ask("PUT", "/kill-switch", { stopped: false })
        yield* endedRuns(story, agent, 1)
        expect(yield* explain(story, agent, event)).toMatchObject({ outcome: "woke" })
      })
    )

    it.effect("conditions that do not hold and relationships that nobody named are told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const where = { properties: [{ property: "age", op: "gte", value: 18 }] }
        const adults = yield* story.post(
          "/agents",
          watcher({ reactionConfig: { objectTypes: ["Person"], events: ["created"], where } })
        )
        const child = yield* make(story, "Person", { age: 7 })
        const acme = yield* make(story, "Company")
        yield* story.post("/relationships", { type: "WORKS_AT", fromId: child.id, toId: acme.id })
        const [ofChild, , ofWork] = yield* feedOf(story, 3)
        expect(yield* explain(story, adults, ofChild)).toMatchObject({
          outcome: "refused",
          rule: "properties",
          reason: expect.stringContaining("age gte 18")
        })
        expect(yield* explain(story, adults, ofWork)).toMatchObject({
          outcome: "refused",
          rule: "relationshipType"
        })
      })
    )

    it.effect("an agent that was disabled after failures is told with what disabled it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: { provider: "anthropic", name: "none" }, disableAfterFailures: 1 })
        )
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1)
        yield* make(story, "Person")
        const [, second] = yield* feedOf(story, 2)
        expect(yield* explain(story, agent, second)).toMatchObject({
          outcome: "refused",
          rule: "disabled",
          reason: expect.stringContaining("anthropic")
        })
      })
    )

    it.effect("a failed run is told with its error", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: { provider: "anthropic", name: "none" } })
        )
        yield* make(story, "Person")
        const [entry] = yield* entriesWhen(story, agent, 1)
        const [event] = yield* feedOf(story, 1)
        expect(yield* explain(story, agent, event)).toMatchObject({
          outcome: "woke",
          reason: expect.stringContaining(entry.errorMessage),
          run: { status: "failed" }
        })
      })
    )
  })

  describe("Decision: a later change does not falsify the answer", () => {
    it.effect("the agent is judged as it was when the event was dispatched", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ name: "once" }))
        yield* make(story, "Company")
        const [ofCompany] = yield* feedOf(story, 1)
        const reactionConfig = { objectTypes: ["Company"], events: ["created"] }
        yield* story.patch(`/agents/${agent.id}`, { reactionConfig, name: "renamed" })
        const before = {
          outcome: "refused",
          rule: "objectType",
          agentVersion: 1,
          agentName: "renamed",
          reason: naming("Company", "Person")
        }
        expect(yield* explain(story, agent, ofCompany)).toMatchObject(before)

        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        yield* make(story, "Company")
        const [, asleep] = yield* feedOf(story, 2)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        yield* make(story, "Person")
        const [, , ofPerson] = yield* feedOf(story, 3)
        expect(yield* explain(story, agent, ofCompany)).toMatchObject(before)
        expect(yield* explain(story, agent, asleep)).toMatchObject({ rule: "disabled", agentVersion: 3 })
        expect(yield* explain(story, agent, ofPerson)).toMatchObject({ rule: "objectType", agentVersion: 4 })
        expect(yield* runsOf(story, agent)).toEqual([])
      })
    )

    it.effect("an agent hears nothing from before it was made or enabled, and is told so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* make(story, "Person")
        const [event] = yield* feedOf(story, 1)
        const agent = yield* story.post("/agents", watcher())
        expect(yield* explain(story, agent, event)).toMatchObject({
          outcome: "refused",
          rule: "madeLater",
          agentVersion: null,
          reason: expect.stringContaining(agent.createdAt)
        })
      })
    )

    it.effect("a deleted agent and a deleted object are explained as before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Seen.") }))
        const person = yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const [ofPerson] = yield* feedOf(story, 1)
        const woke = { outcome: "woke", run: { status: "completed" } }
        yield* story.delete(`/objects/${person.id}`)
        expect(yield* explain(story, agent, ofPerson)).toMatchObject(woke)
        yield* story.delete(`/agents/${agent.id}`)
        expect(yield* explain(story, agent, ofPerson)).toMatchObject(woke)
        expect((yield* explainAll(story, ofPerson)).watcher).toMatchObject(woke)

        yield* make(story, "Person")
        const [, , afterwards] = yield* feedOf(story, 3)
        expect(yield* explain(story, agent, afterwards)).toMatchObject({
          outcome: "refused",
          rule: "deleted"
        })
        // Of an event after its time a deleted agent is not told with the others.
        expect(yield* explainAll(story, afterwards)).toEqual({})
      })
    )
  })

  describe("Where there is nothing to explain", () => {
    it.effect("an agent or an event of another project is not found", () =>
      Effect.gen(function* () {
        const [story, elsewhere] = [yield* newStoryHere, yield* newStoryHere]
        const [mine, theirs] = [
          yield* story.post("/agents", watcher()),
          yield* elsewhere.post("/agents", watcher())
        ]
        yield* make(story, "Person")
        yield* make(elsewhere, "Person")
        const [[event], [foreign]] = [yield* feedOf(story, 1), yield* feedOf(elsewhere, 1)]
        const ask = (agent: Json, one: Json) =>
          Effect.map(
            story.ask("GET", `/agents/${agent.id}/explain?eventId=${one.id}`),
            (answer) => answer.status
          )
        expect([yield* ask(mine, event), yield* ask(theirs, event), yield* ask(mine, foreign)]).toEqual([
          200, 404, 404
        ])
      })
    )

    it.effect("many agents come page by page", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* Effect.forEach([1, 2, 3], (n) => story.post("/agents", watcher({ name: `w-${n}` })))
        yield* make(story, "Company")
        const [event] = yield* feedOf(story, 1)
        const path = `/events/${event.id}/explanations?limit=2`
        const first = yield* story.get(path)
        const second = yield* story.get(`${path}&cursor=${first.nextCursor}`)
        expect([...first.items, ...second.items].map((one) => one.agentName)).toEqual([
          "w-3",
          "w-2",
          "w-1",
          "TodoAssistant"
        ])
        expect(second.nextCursor).toBeNull()
        yield* eventually(story.get(path), (page) => page.items.length === 2)
      })
    )
  })
})

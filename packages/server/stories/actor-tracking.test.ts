/**
 * Who made a change, and which agents leave it alone because of that.
 */
import { describe, expect, layer } from "@effect/vitest"
import { chainBounds } from "@tropism/domain/chain"
import { Effect } from "effect"
import { ask, refusalOf } from "../testing/owner-rows.ts"
import { scripted } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  callsOf,
  calling,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  watcher
} from "../testing/story-words.ts"

/** Creates an object of a type whenever it is woken. */
const creating = (type: string) => calling({ tool: "create_object", arguments: { type, properties: {} } })

/** Counts up a property of what woke it. */
const counting = calling({
  tool: "update_object",
  arguments: { objectId: "{{ input.object.id }}", properties: { count: "{{ input.object.version }}" } }
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: Actor Tracking", () => {
    it.effect("S000-R07, R08 what a user creates, updates or deletes says user and the user's id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const me = yield* story.send("GET", "/api/me")
        const byMe = { actorType: "user", actorId: me.body.userId }
        expect(byMe.actorId).toEqual(expect.any(String))
        const created = yield* make(story, "Person")
        expect(created).toMatchObject(byMe)
        const updated = yield* story.patch(`/objects/${created.id}`, { properties: { name: "Ada" } })
        expect(updated).toMatchObject({ version: 2, ...byMe })
        yield* story.delete(`/objects/${created.id}`)
        const history = yield* story.get(`/objects/${created.id}/history`)
        expect(history.items).toMatchObject([
          { version: 3, type: "deleted", ...byMe },
          { version: 2, type: "updated", ...byMe },
          { version: 1, type: "created", ...byMe }
        ])
      })
    )

    it.effect("S000-R09, R10 what an agent creates or updates says agent and the agent's id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            model: calling(
              { tool: "create_object", arguments: { type: "Note", key: "a", properties: {} } },
              {
                tool: "update_object",
                arguments: { objectId: "{{ input.object.id }}", properties: { seen: true } }
              }
            )
          })
        )
        const person = yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        const byAgent = { actorType: "agent", actorId: agent.id }
        expect((yield* story.get("/objects?type=Note")).items).toMatchObject([{ key: "a", ...byAgent }])
        expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
          version: 2,
          properties: { seen: true },
          ...byAgent
        })
        const [, ofNote, ofUpdate] = yield* feedOf(story, 3)
        const calls = yield* callsOf(story, run)
        expect([ofNote, ofUpdate]).toMatchObject([
          { ...byAgent, type: "created", runId: run.id, toolCallId: calls[0].id, approvedBy: null },
          { ...byAgent, type: "updated", runId: run.id, toolCallId: calls[1].id, approvedBy: null }
        ])
        const history = yield* story.get(`/objects/${person.id}/history`)
        expect(history.items).toMatchObject([
          { version: 2, ...byAgent },
          { version: 1, actorType: "user" }
        ])
      })
    )

    it.effect("S000-R11 an agent that ignores itself is not triggered by what it creates", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: { objectTypes: [], events: ["created"], ignoreSelfTriggered: true },
            model: creating("Note")
          })
        )
        const person = yield* make(story, "Person")
        const [, ofNote] = yield* feedOf(story, 2)
        expect(ofNote).toMatchObject({
          objectType: "Note",
          refusals: [{ agentId: agent.id, rule: "selfTriggered" }]
        })
        const entries = yield* entriesWhen(story, agent, 1)
        expect(entries.map((entry) => entry.graphObjectId)).toEqual([person.id])
        expect(yield* runsOf(story, agent)).toHaveLength(1)
      })
    )

    it.effect("S000-R12 an agent that ignores itself is not triggered by what it updates", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: {
              objectTypes: ["Person"],
              events: ["created", "updated"],
              ignoreSelfTriggered: true
            },
            model: counting
          })
        )
        yield* make(story, "Person")
        const [, ofUpdate] = yield* feedOf(story, 2)
        expect(ofUpdate).toMatchObject({
          type: "updated",
          refusals: [{ agentId: agent.id, rule: "selfTriggered" }]
        })
        expect(yield* entriesWhen(story, agent, 1)).toMatchObject([{ eventType: "created" }])
        expect(yield* runsOf(story, agent)).toHaveLength(1)
      })
    )
  })

  describe("Decision: actor tracking for loop prevention", () => {
    it.effect("S001-R12 actor_type is user, agent or system, and user where nothing is said", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const rows = yield* ask(
          access,
          `select column_default from information_schema.columns
           where table_schema = 'kb' and table_name = 'graph_objects' and column_name = 'actor_type'`
        )
        expect(rows).toEqual([[expect.stringMatching(/^'user'/)]])
        const story = yield* newStoryHere
        const insert = (actorType: string) =>
          `insert into kb.graph_objects (id, project_id, type, properties, version, actor_type)
           values (gen_random_uuid(), '${story.projectId}', 'Person', '{}', 1, '${actorType}')`
        expect(yield* refusalOf(access, insert("robot"))).toBe("23514")
        for (const actorType of ["user", "agent", "system"])
          expect(yield* refusalOf(access, insert(actorType))).toBeUndefined()
      })
    )

    it.effect("S001-R13 actor_id may be null and is text, since user ids are text", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const rows = yield* ask(
          access,
          `select is_nullable, data_type from information_schema.columns
           where table_schema = 'kb' and table_name = 'graph_objects' and column_name = 'actor_id'`
        )
        expect(rows).toEqual([["YES", "text"]])
      })
    )

    it.effect(
      "S001-R14, R50 an agent ignores what it did itself where nothing is said, but nobody else's changes",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const config = { objectTypes: ["Note"], events: ["created"] }
          const writer = yield* story.post(
            "/agents",
            watcher({
              name: "writer",
              reactionConfig: { objectTypes: ["Note", "Person"], events: ["created"] },
              model: creating("Note")
            })
          )
          const reader = yield* story.post("/agents", watcher({ name: "reader", reactionConfig: config }))
          expect(reader.reactionConfig.ignoreSelfTriggered).toBe(true)
          yield* make(story, "Person")
          const [, note] = yield* feedOf(story, 2)
          expect(note).toMatchObject({
            actorId: writer.id,
            refusals: [{ agentId: writer.id, rule: "selfTriggered" }]
          })
          expect(yield* entriesWhen(story, reader, 1)).toMatchObject([{ graphObjectId: note.entityId }])
          expect(yield* runsOf(story, writer)).toHaveLength(1)
        })
    )

    it.effect("S001-R15, R16 an agent ignores or hears the changes of any agent, as it is configured", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", watcher({ name: "writer", model: creating("Note") }))
        const define = (name: string, ignoreAgentTriggered?: boolean) =>
          story.post(
            "/agents",
            watcher({
              name,
              reactionConfig: { objectTypes: ["Note"], events: ["created"], ignoreAgentTriggered }
            })
          )
        const deaf = yield* define("deaf", true)
        const hearing = yield* define("hearing", false)
        const byDefault = yield* define("by-default")
        yield* make(story, "Person")
        const [, byAgent] = yield* feedOf(story, 2)
        const byUser = yield* make(story, "Note")
        yield* feedOf(story, 3)
        expect(byAgent.refusals).toEqual([
          { agentId: deaf.id, rule: "agentTriggered", reason: expect.any(String) }
        ])
        const objectsOf = (entries: ReadonlyArray<{ readonly graphObjectId: string }>) =>
          entries.map((entry) => entry.graphObjectId)
        expect(objectsOf(yield* entriesOf(story, deaf))).toEqual([byUser.id])
        expect(objectsOf(yield* entriesOf(story, hearing))).toEqual([byAgent.entityId, byUser.id])
        expect(objectsOf(yield* entriesOf(story, byDefault))).toEqual([byAgent.entityId, byUser.id])
      })
    )

    it.effect(
      "S001-R04, K01 two agents that wake each other stop at the cap of their chain, and it is recorded",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const on = (type: string) => ({ objectTypes: [type], events: ["created"] })
          const ping = yield* story.post(
            "/agents",
            watcher({ name: "ping", reactionConfig: on("Ping"), model: creating("Pong") })
          )
          const pong = yield* story.post(
            "/agents",
            watcher({ name: "pong", reactionConfig: on("Pong"), model: creating("Ping") })
          )
          yield* make(story, "Ping")
          const feed = yield* feedOf(story, chainBounds.maxDepth.default + 1)
          expect(feed.map((event) => event.depth)).toEqual([...feed.keys()])
          expect(new Set(feed.map((event) => event.rootEventId))).toEqual(new Set([feed[0].id]))
          expect(feed.slice(0, -1).flatMap((event) => event.refusals)).toEqual([])
          expect(feed.at(-1).refusals).toEqual([
            {
              agentId: ping.id,
              rule: "chainDepth",
              reason: expect.stringContaining(String(chainBounds.maxDepth.default))
            }
          ])
          const half = chainBounds.maxDepth.default / 2
          expect([
            (yield* endedRuns(story, ping, half)).length,
            (yield* endedRuns(story, pong, half)).length
          ]).toEqual([half, half])
          expect(yield* feedOf(story, 0)).toHaveLength(feed.length)
        })
    )

    it.effect("S001-R04, K01 an agent that does not ignore itself stops at the cap of its chain", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: {
              objectTypes: ["Person"],
              events: ["created", "updated"],
              ignoreSelfTriggered: false,
              concurrencyStrategy: "parallel"
            },
            model: counting
          })
        )
        const person = yield* make(story, "Person")
        const feed = yield* feedOf(story, chainBounds.maxDepth.default + 1)
        expect(feed.at(-1)).toMatchObject({
          depth: chainBounds.maxDepth.default,
          refusals: [{ agentId: agent.id, rule: "chainDepth" }]
        })
        yield* endedRuns(story, agent, chainBounds.maxDepth.default)
        expect((yield* story.get(`/objects/${person.id}`)).version).toBe(chainBounds.maxDepth.default + 1)
      })
    )

    it.effect("S001-R04 a chain wakes no more agents than its cap of runs, and it is recorded", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const call = { tool: "create_object", arguments: { type: "Leaf", properties: {} } }
        const late = scripted([{ when: "step == 0", calls: [call], latencyMs: 60_000 }, { say: "Done." }])
        const first = yield* story.post("/agents", watcher({ name: "first", model: late }))
        const reactionConfig = { objectTypes: ["Leaf"], events: ["created"] }
        const left = yield* story.post("/agents", watcher({ name: "left", reactionConfig }))
        const right = yield* story.post("/agents", watcher({ name: "right", reactionConfig }))
        yield* make(story, "Person")
        const [root] = yield* feedOf(story, 1)
        yield* entriesWhen(story, first, 1, (entry) => entry.status === "processing")
        // As if the chain had led to all runs but one by now; the next event would wake two agents.
        yield* ask(story.access, "update kb.budgets set runs = $1 where scope = 'chain' and scope_id = $2", [
          chainBounds.maxRuns.default - 1,
          root.id
        ])
        const feed = yield* asTimePasses(20_000, feedOf(story, 0), (events) => events.length === 2)
        expect(feed[1].refusals).toEqual([
          {
            agentId: right.id,
            rule: "chainRuns",
            reason: expect.stringContaining(String(chainBounds.maxRuns.default))
          }
        ])
        expect(yield* endedRuns(story, left, 1)).toHaveLength(1)
        expect(yield* entriesOf(story, right)).toEqual([])
        expect(yield* runsOf(story, right)).toEqual([])
      })
    )
  })
})

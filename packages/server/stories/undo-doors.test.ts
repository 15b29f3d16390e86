/**
 * Who may undo what, what is refused, and whom an undo wakes.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, newProject, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  calling,
  change,
  endedRuns,
  entriesOf,
  entriesWhen,
  explained,
  feedOf,
  make,
  runsOf,
  silentFor,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { approve, updating } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"
import { acted, itemsOf, objectNow, undoRun } from "../testing/undo-words.ts"
import { naming } from "../testing/naming.ts"

const noId = "00000000-0000-7000-8000-000000000000"

layer(SharedServer.layer)((it) => {
  describe("What can be undone", () => {
    it.effect("S001-F08 what is missing, or another project's, is not found", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { agent, run } = yield* acted(story, [updating(ada, { age: 2 })])
        const [root] = yield* feedOf(story, 1)
        const other = yield* newProject(story, story.access)
        const task = (yield* undoRun(story, run)).body
        const asked: ReadonlyArray<readonly [Story, string, string, unknown?]> = [
          [story, "POST", `/runs/${noId}/undo`],
          [story, "POST", `/agents/${noId}/undo`, { version: 1 }],
          [story, "POST", `/agents/${agent.id}/undo`, { version: 7 }],
          [story, "POST", `/chains/${noId}/undo`],
          [other, "POST", `/runs/${run.id}/undo`],
          [other, "POST", `/agents/${agent.id}/undo`, { version: 1 }],
          [other, "POST", `/chains/${root.id}/undo`],
          [other, "POST", `/tasks/${task.id}/rerun`],
          [other, "POST", `/tasks/${task.id}/approve`, {}],
          [other, "GET", `/tasks/${task.id}/items`],
          [story, "GET", `/tasks/${noId}/items`],
          [story, "POST", `/tasks/${noId}/rerun`]
        ]
        for (const [where, method, path, body] of asked)
          expect([path, (yield* where.ask(method, path, body)).status]).toEqual([path, 404])
        for (const body of [{}, { version: 0 }, { version: 1.5 }, { version: 1e12 }, { version: "1" }])
          expect((yield* story.ask("POST", `/agents/${agent.id}/undo`, body)).status).toBe(422)
        expect((yield* story.ask("GET", `/tasks/${task.id}/items?cursor=x`)).status).toBe(422)
        const page = yield* story.get(`/tasks/${task.id}/items?limit=1`)
        expect([page.items.length, page.nextCursor]).toEqual([1, null])
      })
    )

    it.effect("S001-F08 only who may review may undo", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { agent, run } = yield* acted(story, [updating(ada, { age: 2 })])
        const task = (yield* undoRun(story, run)).body
        const editor = yield* asUser(story, "editor")
        const root = run.rootEventId
        for (const [path, body] of [
          [`/runs/${run.id}/undo`],
          [`/agents/${agent.id}/undo`, { version: 1 }],
          [`/chains/${root}/undo`],
          [`/tasks/${task.id}/rerun`],
          [`/tasks/${task.id}/approve`, {}]
        ] as const)
          expect([path, (yield* editor.ask("POST", path, body)).status]).toEqual([path, 403])
      })
    )

    it.effect("S001-F08 a run that may still write is stopped first", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            model: silentFor(60_000),
            reactionConfig: { objectTypes: ["Start"], events: ["created"] }
          })
        )
        yield* make(story, "Start")
        const [run] = yield* eventually(runsOf(story, agent), (runs) => runs[0]?.status === "running")
        for (const [path, body] of [
          [`/runs/${run.id}/undo`],
          [`/agents/${agent.id}/undo`, { version: 1 }],
          [`/chains/${run.rootEventId}/undo`]
        ] as const) {
          const answer = yield* story.ask("POST", path, body)
          expect([answer.status, answer.body.reason]).toEqual([409, "state"])
          expect(answer.body.detail).toContain(`/runs/${run.id}/cancel`)
        }
        yield* story.post(`/runs/${run.id}/cancel`)
        const nothing = yield* undoRun(story, run)
        expect([nothing.status, nothing.body.reason]).toEqual([409, "state"])
      })
    )

    it.effect("S001-F08 only an undo is planned anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        yield* acted(story, [updating(ada, { age: 2 })], { executionMode: "suggest" })
        const [task] = yield* suggestionsOf(story, 1)
        const left = yield* approve(story, task, { leaveOut: [ada.id] })
        expect([left.status, left.body.errors[0].pointer]).toEqual([422, "/leaveOut"])
        expect((yield* story.ask("GET", `/tasks/${task.id}/items`)).status).toBe(404)
      })
    )
  })

  describe("What belongs to a cause", () => {
    it.effect("S001-F08 an approved suggestion is its run's work, and what still waits is dropped", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [
          yield* make(story, "Person", { age: 1 }),
          yield* make(story, "Person", { age: 1 })
        ]
        const { run } = yield* acted(story, [updating(ada, { age: 2 }), updating(grace, { age: 2 })], {
          executionMode: "suggest"
        })
        const [first, second] = yield* suggestionsOf(story, 2)
        yield* approve(story, first)
        const plan = yield* undoRun(story, run)
        expect(plan.body.payload.counts).toMatchObject({ ready: 1, suggestions: 1 })
        expect((yield* story.get(`/tasks/${second.id}`)).status).toBe("pending")
        const decided = yield* approve(story, plan.body)
        expect(decided.body.outcome).toMatchObject({ undone: 1, expiredSuggestions: 1 })
        expect((yield* objectNow(story, ada)).properties).toEqual({ age: 1 })
        expect(yield* story.get(`/tasks/${second.id}`)).toMatchObject({
          status: "expired",
          resolvedBy: null,
          resolutionNote: naming(plan.body.number)
        })
      })
    )

    it.effect("S001-F08 a version of an agent is undone in all its runs, another version's work stays", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [
          yield* make(story, "Person", { age: 1 }),
          yield* make(story, "Person", { age: 1 })
        ]
        const { agent } = yield* acted(story, [updating(ada, { age: 2 })])
        yield* story.patch(`/agents/${agent.id}`, { model: calling(updating(grace, { age: 3 })) })
        yield* make(story, "Start")
        yield* endedRuns(story, agent, 2)
        const plan = yield* story.ask("POST", `/agents/${agent.id}/undo`, { version: 1 })
        expect([plan.status, plan.body.title]).toEqual([201, "Undo actor version 1"])
        expect(Object.keys(yield* itemsOf(story, plan.body))).toEqual([ada.id])
        yield* approve(story, plan.body)
        expect([
          (yield* objectNow(story, ada)).properties,
          (yield* objectNow(story, grace)).properties
        ]).toEqual([{ age: 1 }, { age: 3 }])
      })
    )

    it.effect("S001-F08 a chain is undone as far as agents went, and shows the undo", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const follow = (name: string, from: string, to: string) =>
          story.post(
            "/agents",
            watcher({
              name,
              reactionConfig: { objectTypes: [from], events: ["created"] },
              model: calling({ tool: "create_object", arguments: { type: to, properties: {} } })
            })
          )
        const first = yield* follow("first", "A", "B")
        const second = yield* follow("second", "B", "C")
        const root = yield* make(story, "A", { title: "The first of all" })
        yield* endedRuns(story, first, 1)
        yield* endedRuns(story, second, 1)
        const [rootEvent] = yield* feedOf(story, 3)
        const plan = yield* story.ask("POST", `/chains/${rootEvent.id}/undo`)
        expect([plan.status, plan.body.payload.counts.ready]).toEqual([201, 2])
        expect(plan.body.title).toContain("A The first of all created")
        expect(plan.body.payload.agents.map(({ name }: Json) => name)).toEqual(["first", "second"])
        const chain = yield* story.get(`/chains/${rootEvent.id}?limit=200`)
        expect(chain.items.at(-1)).toMatchObject({ type: "task", task: { type: "undo", runId: null } })
        yield* approve(story, plan.body)
        expect((yield* story.get("/objects?limit=200")).items.map(({ id }: Json) => id)).toEqual([root.id])
        // The event that began it is a link of a chain and begins none: it is not undone by itself.
        const [, ofAgent] = yield* feedOf(story, 3)
        expect((yield* story.ask("POST", `/chains/${ofAgent.id}/undo`)).status).toBe(404)
      })
    )
  })

  describe("Whom an undo wakes", () => {
    it.effect("S001-F08 the agent that is undone is not woken by it and is told why, others are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Start", "Person"], events: ["created", "updated"] }
        const ada = yield* make(story, "Person", { age: 1 })
        const { agent, run } = yield* acted(story, [updating(ada, { age: 2 })], { reactionConfig })
        const other = yield* story.post("/agents", watcher({ name: "other", reactionConfig }))
        const plan = (yield* undoRun(story, run)).body
        yield* approve(story, plan)
        const [event] = (yield* feedOf(story, 4)).toReversed()
        expect(event).toMatchObject({ taskId: plan.id, actorType: "user", undoes: [agent.id] })
        expect(event.refusals).toEqual([
          {
            agentId: agent.id,
            rule: "undone",
            reason: expect.any(String)
          }
        ])
        expect(yield* explained(story, agent, event)).toMatchObject({ outcome: "refused", rule: "undone" })
        expect(yield* entriesWhen(story, other, 1)).toMatchObject([{ eventId: event.id }])
        expect(yield* entriesOf(story, agent)).toHaveLength(1)
        // What a person does afterwards wakes it as always.
        yield* change(story, ada, { age: 5 })
        yield* entriesWhen(story, agent, 2)
      })
    )

    it.effect("S001-F08 an agent that listens to itself is woken by its undo, too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const { agent, run } = yield* acted(story, [updating(ada, { age: 2 })])
        yield* story.patch(`/agents/${agent.id}`, {
          reactionConfig: { objectTypes: ["Person"], events: ["updated"], ignoreSelfTriggered: false }
        })
        const plan = (yield* undoRun(story, run)).body
        yield* approve(story, plan)
        yield* entriesWhen(story, agent, 2)
      })
    )
  })
})

/**
 * What a person does through MCP: the graph, their todos, and what agents did and ask.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent } from "../testing/context-words.ts"
import { newConversation, talker } from "../testing/conversation-words.ts"
import { atTheDoor } from "../testing/person-words.ts"
import { eventually, type Json, promptWithObject } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asked } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { explained, feedOf, make, saying, silentFor } from "../testing/story-words.ts"
import { creating, suggestedBy, updating } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const worker = { prompt: promptWithObject, triggerType: "manual", tools: ["graph.*"] }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: people's own tools", () => {
    it.effect(
      "S003-R44 S003-R47 S003-R48 a change is the caller's own, with its reason, and each call is on record",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const editor = yield* atTheDoor(yield* asUser(story, "editor"))
          const { result: made } = yield* editor.call("create_object", {
            type: "Note",
            key: "first",
            properties: { text: "Hello" },
            reasoning: "Somebody has to begin"
          })
          expect(made).toMatchObject({
            status: "applied",
            object: { type: "Note", key: "first", version: 1 }
          })
          const { id } = made.object
          const change = { objectId: id, properties: { text: "Bye" } }
          expect(
            (yield* editor.call("update_object", { ...change, expectedVersion: 7 })).result
          ).toMatchObject({
            reason: "version"
          })
          expect(
            (yield* editor.call("update_object", { ...change, expectedVersion: 1 })).result
          ).toMatchObject({
            status: "applied",
            object: { version: 2 }
          })
          expect((yield* editor.call("update_object", change)).result.status).toBe("unchanged")
          const { result: found } = yield* editor.call("search_objects", { query: "bye" })
          expect(found).toMatchObject({ total: 1, items: [{ id, properties: { text: "Bye" } }] })

          const object = yield* story.get(`/objects/${id}`)
          expect(object).toMatchObject({ version: 2, actorType: "user", actorId: "editor" })
          const provenance = yield* story.get(`/objects/${id}/provenance`)
          expect(provenance.properties[0]).toMatchObject({
            actorId: "editor",
            toolCall: { tool: "update_object" }
          })

          const { items } = yield* story.get("/tool-calls?userId=editor")
          expect(
            items.map(({ decision, status, tool }: Json) => [tool, status, decision]).toReversed()
          ).toEqual([
            ["create_object", "completed", "execute"],
            ["update_object", "failed", null],
            ["update_object", "completed", "execute"],
            ["update_object", "completed", "execute"],
            ["search_objects", "completed", null]
          ])
          expect(items.at(-1)).toMatchObject({
            userId: "editor",
            runId: null,
            agentId: null,
            arguments: { type: "Note", key: "first", reasoning: "Somebody has to begin" },
            result: { status: "applied" },
            createdAt: expect.stringMatching(/^\d{4}-/)
          })
        })
    )

    it.effect("the reason of a change is found with the value that it set", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* atTheDoor(yield* asUser(story, "editor"))
        const note = yield* make(story, "Note", { text: "a" })
        yield* editor.call("update_object", {
          objectId: note.id,
          properties: { text: "b" },
          reasoning: "B is better"
        })
        const { properties } = yield* story.get(`/objects/${note.id}/provenance`)
        expect(properties).toMatchObject([
          {
            property: "text",
            value: "b",
            actorType: "user",
            actorId: "editor",
            toolCall: { reasoning: "B is better" }
          }
        ])
      })
    )

    it.effect(
      "a viewer reads, an editor writes and decides; who may not is told so, and it is on record",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const note = yield* make(story, "Note", { text: "a" })
          const { task } = yield* suggestedBy(story, "scribe", updating(note, { text: "b" }))
          const viewer = yield* atTheDoor(yield* asUser(story, "viewer"))
          const editor = yield* atTheDoor(yield* asUser(story, "editor"))
          expect((yield* viewer.call("get_object", { objectId: note.id })).isError).toBe(false)
          expect(yield* viewer.call("delete_object", { objectId: note.id })).toEqual({
            isError: true,
            result: { error: naming("editor", "viewer"), reason: "forbidden" }
          })
          const decision = { taskId: task.id, digest: task.digest }
          expect(yield* viewer.call("approve_suggestion", decision)).toEqual({
            isError: true,
            result: { error: naming("editor", "viewer"), reason: "forbidden" }
          })
          expect((yield* story.get(`/objects/${note.id}`)).version).toBe(1)
          expect((yield* editor.call("approve_suggestion", decision)).result).toMatchObject({
            status: "completed",
            resolvedBy: "editor"
          })
          const { items } = yield* story.get("/denials")
          expect(items.slice(0, 2)).toMatchObject([
            {
              door: "mcp",
              userId: "viewer",
              tool: "approve_suggestion",
              agentId: null,
              runId: null,
              reason: "forbidden"
            },
            {
              door: "mcp",
              userId: "viewer",
              tool: "delete_object",
              change: { type: "delete", objectId: note.id }
            }
          ])
          const { items: calls } = yield* story.get("/tool-calls?userId=viewer")
          expect(calls[1]).toMatchObject({ tool: "delete_object", status: "refused", decision: "refuse" })
        })
    )

    it.effect("an approval is bound to what was shown, is the agent's change, and names who approved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = yield* make(story, "Note", { text: "a", kept: 1 })
        const { agent, tasks } = yield* suggestedBy(
          story,
          "scribe",
          updating(note, { text: "b" }),
          creating("new")
        )
        const reviewer = yield* atTheDoor(yield* asUser(story, "reviewer"))
        const { result: waits } = yield* reviewer.call("list_review")
        expect(waits.items.map(({ taskId }: Json) => taskId)).toEqual([tasks[1].id, tasks[0].id])
        const { result: shown } = yield* reviewer.call("get_suggestion", { taskId: tasks[0].id })
        expect(shown).toMatchObject({
          diff: [{ pointer: "/text", before: "a", after: "b" }],
          staleness: { state: "fresh" },
          evidence: expect.any(Array)
        })
        const wrong = yield* reviewer.call("approve_suggestion", {
          taskId: tasks[0].id,
          digest: "0".repeat(64)
        })
        expect(wrong).toMatchObject({ isError: true, result: { reason: "digestMismatch" } })
        expect((yield* reviewer.call("approve_suggestion", { taskId: tasks[0].id })).result).toMatchObject({
          reason: "invalid",
          pointer: "/digest"
        })
        const { result: done } = yield* reviewer.call("approve_suggestion", {
          taskId: tasks[0].id,
          digest: shown.digest
        })
        expect(done).toMatchObject({ status: "completed", resolvedBy: "reviewer" })
        expect(yield* story.get(`/objects/${note.id}`)).toMatchObject({
          actorType: "agent",
          actorId: agent.id,
          properties: { text: "b", kept: 1 }
        })
        const again = yield* reviewer.call("approve_suggestion", {
          taskId: tasks[0].id,
          digest: shown.digest
        })
        expect(again).toMatchObject({ isError: true, result: { reason: "alreadyDecided" } })
        expect(
          (yield* reviewer.call("reject_suggestion", { taskId: tasks[1].id, reason: "x".repeat(2_001) }))
            .result
        ).toMatchObject({ reason: "invalid", pointer: "/reason" })
        const { result: refused } = yield* reviewer.call("reject_suggestion", {
          taskId: tasks[1].id,
          reason: "No"
        })
        expect(refused).toMatchObject({ status: "rejected", resolutionNote: "No" })
        expect((yield* reviewer.call("list_review")).result.items).toEqual([])
      })
    )

    it.effect(
      "an approval for which the agent lacks the right by now changes nothing and is a denial of the approval",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const note = yield* make(story, "Note", { text: "a" })
          const { agent, task } = yield* suggestedBy(story, "scribe", updating(note, { text: "b" }))
          yield* story.patch(`/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } })
          const reviewer = yield* atTheDoor(yield* asUser(story, "reviewer"))
          const denial = expect.stringContaining("canUpdateObjects")
          expect((yield* reviewer.call("list_review")).result.items).toMatchObject([{ denial }])
          const { result: shown } = yield* reviewer.call("get_suggestion", { taskId: task.id })
          expect(shown).toMatchObject({ denial, staleness: { state: "fresh" } })
          const told = yield* reviewer.call("approve_suggestion", { taskId: task.id, digest: task.digest })
          expect(told).toMatchObject({ isError: true, result: { reason: "notPermitted" } })
          expect((yield* story.get(`/objects/${note.id}`)).version).toBe(1)
          const { items } = yield* story.get("/denials")
          expect(items[0]).toMatchObject({
            door: "approval",
            userId: "reviewer",
            taskId: task.id,
            reason: "notPermitted"
          })
        })
    )

    it.effect("an agent is set to work in one's own name, watched, explained and cancelled", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", {
          ...worker,
          name: "speaker",
          model: saying("It is late.")
        })
        const slow = yield* story.post("/agents", { ...worker, name: "slow", model: silentFor(600_000) })
        const editor = yield* atTheDoor(yield* asUser(story, "editor"))
        const { result: listed } = yield* editor.call("list_agents")
        expect(listed.items.map(({ name }: Json) => name)).toEqual(
          expect.arrayContaining(["slow", "speaker"])
        )
        expect((yield* editor.call("get_agent", { agent: "speaker" })).result).toMatchObject({ id: agent.id })
        const { result: run } = yield* editor.call("trigger_agent", { agent: "speaker", input: "late" })
        expect(run).toMatchObject({ status: "completed", summary: "It is late." })
        expect((yield* editor.call("get_run", { runId: run.id })).result).toMatchObject({
          summary: "It is late."
        })
        const { result: log } = yield* editor.call("get_run_log", { runId: run.id })
        expect(log.items.map(({ type }: Json) => type)).toContain("AgentTurnCompletedEvent")
        const { result: runs } = yield* editor.call("list_runs", { agent: agent.id, status: "completed" })
        expect(runs.items).toMatchObject([{ id: run.id, agentName: "speaker" }])

        const { result: begun } = yield* editor.call("trigger_agent", { agent: slow.id, wait: false })
        yield* eventually(story.get(`/runs/${begun.id}`), ({ status }) => status === "running")
        expect((yield* editor.call("cancel_run", { runId: begun.id })).result).toMatchObject({
          status: "cancelled"
        })
        expect(yield* editor.call("cancel_run", { runId: begun.id })).toMatchObject({
          isError: true,
          result: { reason: "state" }
        })

        yield* make(story, "Person")
        const [event] = yield* feedOf(story, 1)
        const { result: why } = yield* editor.call("explain", { eventId: event.id, agent: "speaker" })
        expect(why.reason).toBe((yield* explained(story, agent, event)).reason)
        const { result: all } = yield* editor.call("explain", { eventId: event.id, limit: 1 })
        expect([all.items.length, typeof all.nextCursor]).toEqual([1, "string"])
      })
    )

    it.effect("a question of an agent is answered, and its run goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, {
          tool: "ask_user",
          arguments: { question: "Which?", options: ["this", "that"] }
        })
        const editor = yield* atTheDoor(yield* asUser(story, "editor"))
        // No other door takes such an answer.
        for (const answer of [" \n", "x".repeat(20_001)])
          expect(
            (yield* editor.call("answer_question", { taskId: question.id, answer })).result
          ).toMatchObject({ reason: "invalid", pointer: "/answer" })
        expect(
          (yield* editor.call("answer_question", { taskId: question.id, answer: "neither" })).result
        ).toMatchObject({
          reason: "noOption"
        })
        const { result } = yield* editor.call("answer_question", { taskId: question.id, answer: "- That." })
        expect(result).toMatchObject({
          status: "completed",
          resolvedBy: "editor",
          payload: { answer: "that" }
        })
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "completed")
      })
    )

    it.effect("what a run did is planned to be undone, and undone by an approval", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = yield* make(story, "Note", { text: "a" })
        const { task } = yield* suggestedBy(story, "scribe", updating(note, { text: "b" }))
        const reviewer = yield* atTheDoor(yield* asUser(story, "reviewer"))
        yield* reviewer.call("approve_suggestion", { taskId: task.id, digest: task.digest })
        const { result: plan } = yield* reviewer.call("plan_undo", { runId: task.runId })
        expect(plan).toMatchObject({ type: "undo", status: "pending" })
        yield* reviewer.call("approve_suggestion", { taskId: plan.id, digest: plan.digest })
        expect((yield* story.get(`/objects/${note.id}`)).properties).toEqual({ text: "a" })
      })
    )

    it.effect("todos are the caller's own, in the words and numbers of the contracts", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const one = yield* atTheDoor(yield* asUser(story, "editor", null, "ada"))
        const other = yield* atTheDoor(yield* asUser(story, "editor", null, "ben"))
        expect((yield* one.call("add_task", { title: "Milk" })).result).toEqual({
          task_id: 1,
          status: "created",
          title: "Milk"
        })
        expect((yield* other.call("list_tasks")).result).toEqual([])
        expect(yield* other.call("complete_task", { task_id: 1 })).toEqual({
          isError: true,
          result: { error: expect.any(String), task_id: 1 }
        })
        expect((yield* one.call("add_task", { title: " " })).result).toEqual({ error: expect.any(String) })
        expect((yield* one.call("complete_task", { task_id: 1 })).result.status).toBe("completed")
        expect((yield* one.call("list_tasks", { status: "completed" })).result).toMatchObject([
          { id: 1, title: "Milk", completed: true }
        ])
      })
    )

    it.effect("what is said in somebody's conversation is theirs", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* talker(story, [{ say: "Nobody must know." }])
        const { contextName } = yield* newConversation(story, agent, "Secret", "ada")
        const hers = yield* asUser(story, "editor", null, "ada")
        yield* addEvent(hers, contextName, "Hush")
        const run = yield* eventually(
          Effect.map(story.get(`/runs?agentId=${agent.id}`), ({ items }) => items[0]),
          (seen) => seen?.status === "completed"
        )
        const ada = yield* atTheDoor(hers)
        const ben = yield* atTheDoor(yield* asUser(story, "reviewer", null, "ben"))
        expect((yield* ada.call("get_run_log", { runId: run.id })).result.items.length).toBeGreaterThan(2)
        expect(yield* ben.call("get_run_log", { runId: run.id })).toEqual({
          isError: true,
          result: { error: expect.any(String), reason: "notFound" }
        })
        for (const [tool, args] of [
          ["get_run", { runId: run.id }],
          ["list_runs", {}],
          ["cancel_run", { runId: run.id }]
        ] as const)
          expect(JSON.stringify(yield* ben.call(tool, args))).not.toMatch(/Nobody must|Hush/)
      })
    )

    it.effect("arguments that no tool can be given are an answer, and on record", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* atTheDoor(yield* asUser(story, "editor"))
        for (const [args, said] of [
          [{ type: "Note", properties: {}, confidence: 1 }, /confidence/],
          [{ type: "Note", properties: {}, suggest: true }, /suggest/],
          [{ properties: {} }, /type/]
        ] as const) {
          const { isError, result } = yield* editor.call("create_object", args)
          expect([isError, result.reason]).toEqual([true, "invalid"])
          expect(result.error).toMatch(said)
        }
        const { items } = yield* story.get("/tool-calls?userId=editor")
        expect(items.map(({ status }: Json) => status)).toEqual(["failed", "failed", "failed"])
        expect((yield* story.get("/objects")).items).toEqual([])
      })
    )
  })

  describe("S003-R47 GET /tool-calls", () => {
    it.effect("shows everybody their own, and an admin those of anybody", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* asUser(story, "editor")
        const { call } = yield* atTheDoor(editor)
        for (const title of ["One", "Two", "Three"]) yield* call("add_task", { title })
        const page = yield* editor.get("/tool-calls?limit=2")
        expect(page.items.map(({ result }: Json) => result.title)).toEqual(["Three", "Two"])
        const rest = yield* editor.get(`/tool-calls?limit=2&cursor=${page.nextCursor}`)
        expect(rest.items.map(({ result }: Json) => result.title)).toEqual(["One"])
        expect((yield* story.get("/tool-calls?userId=editor")).items).toHaveLength(3)
        expect((yield* story.get("/tool-calls")).items).toEqual([])
        expectProblem(yield* editor.ask("GET", "/tool-calls?userId=admin"), 403)
        expectProblem(yield* editor.ask("GET", "/tool-calls?cursor=x"), 422, "cursor")
      })
    )
  })
})

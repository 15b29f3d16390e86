/**
 * For whom a suggestion waits, and until when.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { reviewLimits } from "../src/review/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { problemOf } from "../testing/problem-words.ts"
import { asking, asker, askingModel, questionsOf } from "../testing/question-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  approve,
  creating,
  pendingOf,
  reject,
  suggesting,
  suggestingOnce
} from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Lets the time of a task be up, by the database's clock. */
const letExpire = (story: Story, task: Json) =>
  ask(story.access, "update kb.tasks set expires_at = now() - interval '1 second' where id = $1", [task.id])

const hour = 3_600_000
const inAnHour = () => new Date(Date.now() + hour).toISOString()

/** A suggestion that waits as a policy says. */
const waiting = Effect.fnUntraced(function* (story: Story, reviewPolicy: Record<string, unknown> | null) {
  const agent = yield* suggesting(story, { reviewPolicy })
  yield* suggestingOnce(story, agent, creating("a"))
  const [task] = yield* pendingOf(story)
  return { agent, task }
})

const listed = (story: Story, query: string) =>
  Effect.map(story.get(`/tasks?${query}`), (page) => page.items.map(({ number }: Json) => number))

layer(SharedServer.layer)((it) => {
  describe("Requirement: A suggestion expires", () => {
    it.effect("its time runs from the agent's last words, and the sweep ends its wait", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* waiting(story, { expiresAfterMs: hour })
        expect(Date.parse(task.expiresAt) - Date.parse(task.createdAt)).toBe(hour)
        yield* suggestingOnce(story, agent, creating("a", { more: true }))
        const [refined] = yield* pendingOf(story)
        expect(Date.parse(refined.expiresAt)).toBeGreaterThan(Date.parse(task.expiresAt))

        yield* letExpire(story, task)
        const expired = yield* asTimePasses(
          reviewLimits.expiryIntervalMs,
          story.get(`/tasks/${task.id}`),
          ({ status }) => status === "expired"
        )
        expect(expired).toMatchObject({
          resolvedBy: null,
          resolvedAt: expect.any(String),
          resolutionNote: expect.any(String),
          outcome: null
        })
        expect((yield* story.get("/objects")).items).toEqual([])
        const late = yield* problemOf(approve(story, task), 409)
        expect(late.reason).toBe("expired")
      })
    )

    it.effect("whoever decides when its time is up is refused, also before the sweep came by", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { task } = yield* waiting(story, { expiresAfterMs: hour })
        yield* letExpire(story, task)
        for (const decision of [approve(story, task, { digest: task.digest }), reject(story, task)])
          expect((yield* problemOf(decision, 409)).reason).toBe("expired")
        yield* problemOf(story.ask("PATCH", `/tasks/${task.id}`, { expiresAt: inAnHour() }), 409)
        expect((yield* story.get(`/tasks/${task.id}`)).resolvedBy).toBe(null)
        expect((yield* story.get("/objects")).items).toEqual([])
      })
    )

    it.effect("one whose time is up makes room for another", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* waiting(story, { maxPending: 1, expiresAfterMs: hour })
        yield* letExpire(story, task)
        const { result } = yield* suggestingOnce(story, agent, creating("b"))
        expect(result).toMatchObject({ status: "suggested", taskNumber: 2 })
      })
    )

    it.effect(
      "one whose time is up is neither looked at again nor refined, also before the sweep came by",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, task } = yield* waiting(story, { expiresAfterMs: hour })
          yield* letExpire(story, task)
          const refused = yield* problemOf(story.ask("POST", `/tasks/${task.id}/rerun`), 409)
          expect(refused.reason).toBe("expired")
          const { result } = yield* suggestingOnce(story, agent, creating("a", { more: true }))
          expect(result).toEqual({ status: "suggested", taskId: expect.any(String), taskNumber: 2 })
          expect(yield* story.get(`/tasks/${task.id}`)).toMatchObject({ revision: 1, rerun: null })
        })
    )

    it.effect("without a policy it waits for ever", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { task } = yield* waiting(story, null)
        expect([task.expiresAt, task.assignee]).toEqual([null, null])
      })
    )
  })

  describe("Requirement: Somebody is asked to decide", () => {
    it.effect("the policy names who, a person names another, and anybody with the role may decide", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* waiting(story, { assignee: "grace" })
        expect(task.assignee).toBe("grace")
        const changed = yield* story.patch(`/tasks/${task.id}`, { assignee: "joan", expiresAt: inAnHour() })
        expect(changed).toMatchObject({ assignee: "joan", expiresAt: expect.any(String), revision: 1 })
        // What a person said of the wait stays when the agent says more; its time begins anew, as the policy says.
        yield* suggestingOnce(story, agent, creating("a", { more: true }))
        expect(yield* story.get(`/tasks/${task.id}`)).toMatchObject({ assignee: "joan", revision: 2 })
        // As in the list, `me` is whoever says it.
        expect((yield* story.patch(`/tasks/${task.id}`, { assignee: "me" })).assignee).toBe("admin")
        expect((yield* story.get("/tasks?assignee=me")).items).toMatchObject([{ id: task.id }])
        expect(yield* story.patch(`/tasks/${task.id}`, { assignee: null, expiresAt: null })).toMatchObject({
          assignee: null,
          expiresAt: null
        })
        yield* story.patch(`/tasks/${task.id}`, { assignee: "joan" })
        expect((yield* approve(story, task)).status).toBe(200)
      })
    )

    it.effect("the list is narrowed to an assignee, to oneself and to an agent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const me = (yield* story.send("GET", "/api/me")).body.userId
        const [one, other] = [
          yield* suggesting(story, { reviewPolicy: { assignee: "grace" } }),
          yield* suggesting(story, { name: "other", reviewPolicy: { assignee: me } })
        ]
        yield* suggestingOnce(story, one, creating("a"))
        yield* suggestingOnce(story, other, creating("b"))
        yield* suggestingOnce(story, one, creating("c"))
        expect([
          yield* listed(story, "assignee=grace"),
          yield* listed(story, "assignee=me"),
          yield* listed(story, `agentId=${one.id}&limit=1`),
          yield* listed(story, `agentId=${other.id}&assignee=grace`),
          yield* listed(story, "assignee=nobody")
        ]).toEqual([[3, 1], [2], [3], [], []])
        yield* problemOf(story.ask("GET", "/tasks?assignee=a%00b"), 422)
        yield* problemOf(story.ask("GET", "/tasks?agentId=x"), 422)
      })
    )

    it.effect("a question is handed to somebody, and has no time of its own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* asker(story, askingModel(asking("Which?")))
        yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        const [question] = yield* asTimePasses(100, questionsOf(story), ({ length }) => length === 1)
        const path = `/tasks/${question.id}`
        expect((yield* story.patch(path, { assignee: "grace" })).assignee).toBe("grace")
        yield* problemOf(story.ask("PATCH", path, { expiresAt: inAnHour() }), 422, "/expiresAt")
      })
    )

    it.effect("nothing else is assigned, and nothing that is over", () =>
      Effect.gen(function* () {
        const [story, elsewhere] = [yield* newStoryHere, yield* newStoryHere]
        const { task } = yield* waiting(story, null)
        const path = `/tasks/${task.id}`
        const refused = (body: unknown, status: number, pointer?: string) =>
          problemOf(story.ask("PATCH", path, body), status, pointer)
        yield* refused({ expiresAt: "2020-01-01T00:00:00Z" }, 422, "/expiresAt")
        yield* refused({ expiresAt: "soon" }, 422, "/expiresAt")
        yield* refused({ assignee: "" }, 422, "/assignee")
        yield* refused({ assignee: "a\u0000b" }, 422, "/assignee")
        yield* refused({ assignee: "grace", title: "Other words" }, 422)
        yield* refused({}, 422)
        yield* problemOf(elsewhere.ask("PATCH", path, { assignee: "grace" }), 404)
        const viewer = yield* asUser(story, "viewer")
        yield* problemOf(viewer.ask("PATCH", path, { assignee: "grace" }), 403)
        const todo = yield* story.post("/tasks", { title: "Mine" })
        expect(
          (yield* problemOf(story.ask("PATCH", `/tasks/${todo.id}`, { assignee: "grace" }), 409)).reason
        ).toBe("state")
        expect(yield* story.get(path)).toEqual(task)
        yield* reject(story, task)
        expect((yield* refused({ assignee: "grace" }, 409)).reason).toBe("alreadyDecided")
      })
    )
  })
})

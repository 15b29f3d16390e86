/**
 * How much an agent may ask of people: so many suggestions at once, and nothing twice that was rejected.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { problemOf } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { agentsOf, calling, callsOf, endedRuns, make, watcher } from "../testing/story-words.ts"
import {
  approve,
  creating,
  pendingOf,
  reject,
  suggesting,
  suggestingOnce,
  updating
} from "../testing/suggestion-words.ts"

const limited = (story: Story, reviewPolicy: Record<string, unknown>) => suggesting(story, { reviewPolicy })

/** What the model and the record say of a call that was refused. */
const expectRefused = Effect.fnUntraced(function* (story: Story, { call, result }: Json, reason: string) {
  expect([call.status, call.decision, result.reason]).toEqual(["refused", "refuse", reason])
  const [denial] = (yield* story.get("/denials")).items
  expect(denial).toMatchObject({ reason, toolCallId: call.id, detail: result.error })
  return String(result.error)
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: People are not flooded", () => {
    it.effect("one suggestion more than may wait is refused, until somebody decides", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* limited(story, { maxPending: 2 })
        yield* suggestingOnce(story, agent, creating("a"))
        yield* suggestingOnce(story, agent, creating("b"))
        const third = yield* suggestingOnce(story, agent, creating("c"))
        yield* expectRefused(story, third, "tooManySuggestions")
        // What refines one that waits adds none.
        const again = yield* suggestingOnce(story, agent, creating("b", { more: true }))
        expect(again.result).toMatchObject({ taskNumber: 2, refined: true })
        expect((yield* pendingOf(story)).map((task) => task.number)).toEqual([1, 2])

        const [first] = yield* pendingOf(story)
        yield* reject(story, first)
        expect((yield* suggestingOnce(story, agent, creating("c"))).result).toMatchObject({ taskNumber: 3 })
        yield* expectRefused(story, yield* suggestingOnce(story, agent, creating("d")), "tooManySuggestions")
      })
    )

    it.effect("each agent has its own bound, as its definition says now", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* limited(story, { maxPending: 1 })
        const other = yield* suggesting(story, { name: "other" })
        expect(other.reviewPolicy).toBe(null)
        yield* suggestingOnce(story, agent, creating("a"))
        yield* suggestingOnce(story, other, creating("a"))
        yield* suggestingOnce(story, other, creating("b"))
        yield* expectRefused(story, yield* suggestingOnce(story, agent, creating("b")), "tooManySuggestions")
        const changed = yield* story.patch(`/agents/${agent.id}`, { reviewPolicy: { maxPending: 2 } })
        expect([changed.version, changed.reviewPolicy]).toEqual([2, { maxPending: 2 }])
        expect((yield* suggestingOnce(story, agent, creating("b"))).result.status).toBe("suggested")
        expect(yield* pendingOf(story)).toHaveLength(4)
      })
    )

    it.effect("a policy that can not be is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const policies = [
          [{ maxPending: 0 }, "/reviewPolicy/maxPending"],
          [{ maxPending: 10_001 }, "/reviewPolicy/maxPending"],
          [{ expiresAfterMs: 0 }, "/reviewPolicy/expiresAfterMs"],
          [{ expiresAfterMs: 1.5 }, "/reviewPolicy/expiresAfterMs"],
          [{ assignee: "" }, "/reviewPolicy/assignee"],
          [{ assignee: "a\u0000b" }, "/reviewPolicy/assignee"]
        ] as const
        for (const [reviewPolicy, pointer] of policies)
          yield* problemOf(story.ask("POST", "/agents", { ...watcher(), reviewPolicy }), 422, pointer)
        expect(yield* agentsOf(story)).toEqual([])
      })
    )
  })

  describe("Requirement: What was rejected is not suggested again", () => {
    it.effect("exactly the same is refused with the person's reason, as long as nothing has moved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        const [task] = yield* pendingOf(story)
        yield* reject(story, task, { reason: 'She is "older"' })

        const again = yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        const sentence = yield* expectRefused(story, again, "rejectedBefore")
        expect(sentence).toContain('She is \\"older\\"')
        expect(sentence).toMatch(/\b1\b/)
        expect(yield* pendingOf(story)).toEqual([])
        // Another value is another suggestion, and so is the same of another agent.
        expect((yield* suggestingOnce(story, agent, updating(ada, { age: 3 }))).result.taskNumber).toBe(2)
        const other = yield* suggesting(story, { name: "other" })
        expect((yield* suggestingOnce(story, other, updating(ada, { age: 2 }))).result.taskNumber).toBe(3)
        // The open one is not turned into what was rejected either.
        yield* expectRefused(
          story,
          yield* suggestingOnce(story, agent, updating(ada, { age: 2 })),
          "rejectedBefore"
        )
        expect((yield* pendingOf(story)).map(({ revision }) => revision)).toEqual([1, 1])
      })
    )

    it.effect("once the object has moved the agent may suggest it again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        const [task] = yield* pendingOf(story)
        yield* reject(story, task)
        yield* story.patch(`/objects/${ada.id}`, { properties: { name: "Ada" } })
        const { result } = yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        expect(result).toMatchObject({ status: "suggested", taskNumber: 2 })
      })
    )

    it.effect("once something else that the agent read has moved it may suggest it again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, source] = [yield* make(story, "Person"), yield* make(story, "Source")]
        const agent = yield* suggesting(story, {
          model: calling(
            { tool: "get_object", arguments: { objectId: source.id } },
            updating(ada, { age: 2 })
          )
        })
        const suggest = Effect.gen(function* () {
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          const calls = yield* callsOf(story, run)
          return calls[1]?.result
        })
        yield* suggest
        const [task] = yield* pendingOf(story)
        yield* reject(story, task, { reason: "Not now" })
        expect(yield* suggest).toMatchObject({ reason: "rejectedBefore" })
        yield* story.patch(`/objects/${source.id}`, { properties: { said: "more" } })
        expect(yield* suggest).toMatchObject({ status: "suggested", taskNumber: 2 })
      })
    )

    it.effect(
      "a rejection without a reason is told as one, and other words about the same are no repetition",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* suggesting(story)
          yield* suggestingOnce(story, agent, creating("a"))
          const [task] = yield* pendingOf(story)
          yield* reject(story, task)
          const again = yield* suggestingOnce(story, agent, creating("a"))
          expect(yield* expectRefused(story, again, "rejectedBefore")).toMatch(/\b1\b/)
          yield* suggestingOnce(story, agent, creating("a", { other: true }))
          const [open] = yield* pendingOf(story)
          expect((yield* approve(story, open)).status).toBe(200)
        })
    )
  })
})

describe("Requirement: The bound is exact", () => {
  it.live("thirty runs on two servers at once open as many suggestions as may wait", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const [here, there] = [yield* startServer(access), yield* startServer(access)]
      const story = yield* newProject(here, access)
      const other = storyIn(there, access, story.projectId)
      const agent = yield* limited(story, { maxPending: 7 })
      yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => index),
        (n) =>
          (n % 2 === 0 ? story : other).post(`/agents/${agent.id}/trigger?wait=false`, {
            input: { calls: [creating(`key-${n}`)] }
          }),
        { concurrency: 30 }
      )
      yield* endedRuns(story, agent, 30)
      expect((yield* pendingOf(story)).map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7])
      expect((yield* story.get("/denials?limit=200")).items).toHaveLength(23)
    })
  )
})

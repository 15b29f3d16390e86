/**
 * Several people in one context: each turn works for the person whose words it reads.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, logOf, quietLog } from "../testing/context-words.ts"
import { talker } from "../testing/conversation-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, endedRuns } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Adds a todo of what it was told last. */
const adding = [
  { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }] },
  { say: "{{ results | json }}" }
]

/** A project's context in which Ann and Ben speak with one agent. */
const shared = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ann = yield* asUser(story, "editor", null, "ann")
  const ben = yield* asUser(story, "editor", null, "ben")
  const agent = yield* talker(story, adding)
  yield* story.post("/contexts", { name: "open", agentId: agent.id })
  const tells = Effect.fnUntraced(function* (who: Story, content: string) {
    yield* addEvent(who, "open", content)
    return yield* quietLog(who, "open")
  })
  const todosOf = (who: Story) =>
    Effect.map(who.get("/tasks?type=todo"), ({ items }) => items.map(({ title }: Json) => title))
  const callsOfRun = Effect.fnUntraced(function* (count: number) {
    const runs = yield* endedRuns(story, agent, count)
    return yield* callsOf(story, runs.at(-1))
  })
  return { story, ann, ben, agent, tells, todosOf, callsOfRun }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A turn works for the person whose words it reads", () => {
    it.effect(
      "S003-R44 S003-R45 S003-R47 S003-R48 S003-A03 every call is made for the one who spoke, and recorded so",
      () =>
        Effect.gen(function* () {
          const { story, ann, ben, tells, todosOf, callsOfRun } = yield* shared
          yield* tells(ann, "Buy milk")
          const ofAnn = yield* callsOfRun(1)
          yield* tells(ben, "Call mom")
          const ofBen = yield* callsOfRun(2)
          const record = (userId: string, title: string) => ({
            tool: "add_task",
            userId,
            arguments: { title },
            result: { task_id: 1, status: "created", title },
            createdAt: expect.any(String)
          })
          expect([ofAnn, ofBen]).toMatchObject([[record("ann", "Buy milk")], [record("ben", "Call mom")]])
          expect([ofAnn, ofBen].map(([call]) => Object.keys(call.arguments))).toEqual([["title"], ["title"]])
          expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Buy milk"], ["Call mom"]])
          expect(yield* todosOf(story)).toEqual([])
          const said = (yield* logOf(story, "open")).filter(({ type }) => type === "UserMessageEvent")
          expect(said.map(({ content, userId }) => [content, userId])).toEqual([
            ["Buy milk", "ann"],
            ["Call mom", "ben"]
          ])
        })
    )

    it.effect("S003-R46 a turn that reads the words of several works for nobody, and says why", () =>
      Effect.gen(function* () {
        const { ann, ben, tells, todosOf, callsOfRun } = yield* shared
        yield* addEvent(ben, "open", "Whatever Ann says, add it", false)
        yield* tells(ann, "Buy milk")
        expect(yield* callsOfRun(1)).toMatchObject([
          {
            userId: null,
            status: "refused",
            result: { reason: "notPermitted", error: expect.stringMatching(/^Several people have spoken/) }
          }
        ])
        expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([[], []])
        yield* tells(ann, "Buy milk")
        expect(yield* callsOfRun(2)).toMatchObject([{ userId: "ann", status: "completed" }])
        expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Buy milk"], []])
      })
    )

    it.effect("S003-R44 who speaks is the request's to say, never the message's", () =>
      Effect.gen(function* () {
        const { ann, ben, story } = yield* shared
        for (const injected of [{ userId: "ben" }, { user_id: "ben" }]) {
          const answer = yield* ann.ask("POST", "/contexts/open/events", {
            type: "UserMessageEvent",
            content: "Buy milk",
            ...injected
          })
          expect(answer.status).toBe(422)
        }
        expect((yield* ben.get("/tasks?type=todo")).items).toEqual([])
        expect((yield* logOf(story, "open")).some(({ type }) => type === "UserMessageEvent")).toBe(false)
      })
    )
  })
})

/**
 * Somebody writes between the moment at which an approval is judged and the moment at which its change is made.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import type { Answer, Json, Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { make } from "../testing/story-words.ts"
import { approve, suggested, updating } from "../testing/suggestion-words.ts"

/** Approves while somebody writes just after the judgement; the writer has to wait, or the story never goes on. */
const approvedDuring = Effect.fnUntraced(function* (story: Story, task: Json, write: Effect.Effect<Answer>) {
  const { access, server } = yield* Interposed
  let writer: Fiber.Fiber<Answer> | undefined
  yield* server.interpose(
    "task.beforeChange",
    Effect.gen(function* () {
      writer = yield* Effect.forkDetach(write)
      yield* whenWaiting(access, 1)
    })
  )
  const decided = yield* approve(story, task)
  const written = writer && (yield* Fiber.join(writer))
  return { decided, written }
})

const statesOf = (story: Story, object: Json) =>
  Effect.map(story.get(`/objects/${object.id}/history`), ({ items }) =>
    items.toReversed().map(({ properties, type }: Json) => [type, properties])
  )

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Staleness, nothing is lost at an approval", () => {
    it.effect("S000-R29 a person's write of the same property comes after the change, and stands", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        const write = story.ask("PATCH", `/objects/${person.id}`, { properties: { age: 36 } })
        const { decided, written } = yield* approvedDuring(story, task, write)
        expect([decided.status, written?.status]).toEqual([200, 200])
        expect(yield* statesOf(story, person)).toEqual([
          ["created", { age: 1 }],
          ["updated", { age: 2 }],
          ["updated", { age: 36 }]
        ])
      })
    )

    it.effect("S000-R29 a relationship is not tied to an object whose deletion is approved", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const [gone, other] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const { task } = yield* suggested(story, {
          tool: "delete_object",
          arguments: { objectId: gone.id }
        })
        const ends = { type: "KNOWS", fromId: other.id, toId: gone.id }
        const { decided, written } = yield* approvedDuring(
          story,
          task,
          story.ask("POST", "/relationships", ends)
        )
        expect([decided.status, written?.status]).toEqual([200, 422])
        expect((yield* story.get("/relationships")).items).toEqual([])
      })
    )

    it.effect("S000-R29 an object is deleted together with a relationship that was approved before", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const [from, to] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const { task } = yield* suggested(story, {
          tool: "create_relationship",
          arguments: { type: "KNOWS", fromId: from.id, toId: to.id }
        })
        const deletion = story.ask("DELETE", `/objects/${to.id}`)
        const { decided, written } = yield* approvedDuring(story, task, deletion)
        expect([decided.status, written?.status]).toEqual([200, 204])
        const made = decided.body.outcome.entityId
        const history = yield* story.get(`/relationships/${made}/history`)
        expect(history.items.map(({ type }: Json) => type)).toEqual(["deleted", "created"])
      })
    )

    it.effect("S000-R29 a relationship's new value comes after the change, and stands", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const [from, to] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const ends = { type: "KNOWS", fromId: from.id, toId: to.id }
        const knows = yield* story.post("/relationships", { ...ends, properties: { since: 1 } })
        const { task } = yield* suggested(story, {
          tool: "update_relationship",
          arguments: { relationshipId: knows.id, properties: { since: 2 } }
        })
        const write = story.ask("PATCH", `/relationships/${knows.id}`, { properties: { since: 3 } })
        const { decided, written } = yield* approvedDuring(story, task, write)
        expect([decided.status, written?.status]).toEqual([200, 200])
        expect((yield* story.get(`/relationships/${knows.id}`)).properties).toEqual({ since: 3 })
      })
    )
  })
})

/**
 * What becomes of a suggestion when the graph moves under it: it is applied on top, or refused with what moved.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, make } from "../testing/story-words.ts"
import { approve, suggested, updating } from "../testing/suggestion-words.ts"

/** The refusal of an approval that would overwrite something; the task waits on and the graph is as it was. */
const outdated = Effect.fnUntraced(function* (story: Story, task: Json, body: unknown = {}) {
  const look = Effect.all([
    story.get(`/tasks/${task.id}`),
    story.get("/objects?limit=200"),
    story.get("/relationships?limit=200")
  ])
  const before = yield* look
  const answer = yield* approve(story, task, body)
  expect([answer.status, answer.body.reason]).toEqual([409, "outdated"])
  expect(yield* look).toEqual(before)
  expect(before[0].status).toBe("pending")
  return answer.body
})

const propertiesOf = (story: Story, object: Json) =>
  Effect.map(story.get(`/objects/${object.id}`), (found) => found.properties)

const twoPeople = (story: Story) => Effect.all([make(story, "Person"), make(story, "Person")])

const knowing = Effect.fnUntraced(function* (story: Story, properties: Json = {}) {
  const [from, to] = yield* twoPeople(story)
  const ends = { type: "KNOWS", fromId: from.id, toId: to.id }
  return { from, to, knows: yield* story.post("/relationships", { ...ends, properties }) }
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: Staleness, what moved elsewhere stays", () => {
    it.effect("S000-R29 an update is applied on top of what moved beside it, and the answer says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1, name: "Ada" })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        yield* change(story, person, { name: "Ada L." }, { email: "a@b.c" })
        const decided = yield* approve(story, task, { digest: task.digest })
        expect(decided.body.outcome).toEqual({
          entityId: person.id,
          version: 4,
          change: "updated",
          rebasedFrom: { version: 1, moved: ["/name", "/email"] }
        })
        expect(yield* propertiesOf(story, person)).toEqual({ age: 2, name: "Ada L.", email: "a@b.c" })
      })
    )

    it.effect("S000-R29 what did not move is not said to have moved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        expect((yield* approve(story, task)).body.outcome).toEqual({
          entityId: person.id,
          version: 2,
          change: "updated"
        })
      })
    )

    it.effect("S000-R29 nested properties are judged one by one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const address = { city: "London", street: "A" }
        const [person, other] = [
          yield* make(story, "Person", { address }),
          yield* make(story, "Person", { address })
        ]
        const { tasks } = yield* suggested(
          story,
          updating(person, { address: { city: "Paris" } }),
          updating(other, { address: { street: "B" } })
        )
        yield* change(story, person, { address: { street: "C" } })
        yield* change(story, other, { address: { street: "C" } })
        const problem = yield* outdated(story, tasks[1])
        expect(problem.conflicts).toEqual([
          { pointer: "/address/street", base: "A", current: "C", suggested: "B" }
        ])
        const decided = yield* approve(story, tasks[0])
        expect(decided.body.outcome.rebasedFrom).toEqual({ version: 1, moved: ["/address/street"] })
        expect(yield* propertiesOf(story, person)).toEqual({ address: { city: "Paris", street: "C" } })
      })
    )

    it.effect("S000-R29 a property that has the suggested value already clashes with nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1, note: "x" })
        const { task } = yield* suggested(story, updating(person, { age: 2, note: null }))
        yield* change(story, person, { age: 2, note: null })
        const decided = yield* approve(story, task)
        expect(decided.body.outcome).toEqual({
          entityId: person.id,
          version: 2,
          change: "unchanged",
          rebasedFrom: { version: 1, moved: ["/age", "/note"] }
        })
      })
    )

    it.effect("S000-R29 a relationship's update is applied on top or refused by the same rule", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { knows } = yield* knowing(story, { since: 1, how: "school" })
        const update = (properties: Json) => ({
          tool: "update_relationship",
          arguments: { relationshipId: knows.id, properties }
        })
        const { tasks } = yield* suggested(story, update({ since: 2 }), update({ how: "work" }))
        expect([tasks[0].baseVersion, tasks[0].payload.suggestedChanges]).toEqual([
          1,
          { type: "updateRelationship", relationshipId: knows.id, data: { since: 2 } }
        ])
        yield* story.patch(`/relationships/${knows.id}`, { properties: { how: "family" } })
        const problem = yield* outdated(story, tasks[1])
        expect(problem.conflicts).toEqual([
          { pointer: "/how", base: "school", current: "family", suggested: "work" }
        ])
        const decided = yield* approve(story, tasks[0])
        expect(decided.body.outcome).toMatchObject({
          version: 3,
          rebasedFrom: { version: 1, moved: ["/how"] }
        })
        expect((yield* story.get(`/relationships/${knows.id}`)).properties).toEqual({
          since: 2,
          how: "family"
        })
      })
    )
  })

  describe("Requirement: Staleness, what moved is never overwritten", () => {
    it.effect("S000-R29 the refusal is a three-way diff of what the change would write", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1, name: "Ada", "a/b": [1], old: true })
        const { task } = yield* suggested(
          story,
          updating(person, { age: 2, "a/b": [2], old: null, nick: "A", name: "Ada" })
        )
        yield* change(story, person, { age: null, "a/b": [1, 1], old: false, nick: "Countess", more: 1 })
        const problem = yield* outdated(story, task, { digest: task.digest })
        expect(problem).toMatchObject({ current: 2, gone: false, relationships: [] })
        expect(problem.conflicts).toEqual([
          { pointer: "/a~1b", base: [1], current: [1, 1], suggested: [2] },
          { pointer: "/age", base: 1, suggested: 2 },
          { pointer: "/old", base: true, current: false },
          { pointer: "/nick", current: "Countess", suggested: "A" }
        ])
        expect(problem.detail).toMatch(/\b2\b/)
      })
    )

    it.effect.each(["deleted", "purged"])(
      "S000-R29 what is %s says so: an object, a relationship, an end of a new one",
      (how) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { knows } = yield* knowing(story)
          const [gone, kept] = yield* twoPeople(story)
          const { tasks } = yield* suggested(
            story,
            updating(gone, { age: 2 }),
            { tool: "delete_object", arguments: { objectId: gone.id } },
            {
              tool: "update_relationship",
              arguments: { relationshipId: knows.id, properties: { since: 1 } }
            },
            { tool: "delete_relationship", arguments: { relationshipId: knows.id } },
            { tool: "create_relationship", arguments: { type: "LIKES", fromId: kept.id, toId: gone.id } }
          )
          const query = how === "purged" ? "?purge=true" : ""
          yield* story.delete(`/objects/${gone.id}${query}`)
          yield* story.delete(`/relationships/${knows.id}${query}`)
          for (const task of tasks) {
            const problem = yield* outdated(story, task)
            expect(problem).toMatchObject({ gone: true, current: null, conflicts: [] })
          }
        })
    )

    it.effect("S000-R29 what changed is not deleted, and what is the same again is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { knows } = yield* knowing(story, { since: 1 })
        const [changed, back] = [
          yield* make(story, "Person", { name: "Ada" }),
          yield* make(story, "Person", { name: "Grace" })
        ]
        const { tasks } = yield* suggested(
          story,
          { tool: "delete_object", arguments: { objectId: changed.id } },
          { tool: "delete_object", arguments: { objectId: back.id } },
          { tool: "delete_relationship", arguments: { relationshipId: knows.id } }
        )
        yield* change(story, changed, { name: "Ada L.", age: 36 })
        yield* change(story, back, { name: "G." }, { name: "Grace" })
        yield* story.patch(`/relationships/${knows.id}`, { properties: { since: 2 } })
        expect((yield* outdated(story, tasks[0])).conflicts).toEqual([
          { pointer: "/name", base: "Ada", current: "Ada L." },
          { pointer: "/age", current: 36 }
        ])
        expect((yield* outdated(story, tasks[2])).conflicts).toEqual([
          { pointer: "/since", base: 1, current: 2 }
        ])
        const decided = yield* approve(story, tasks[1])
        expect(decided.body.outcome).toMatchObject({
          change: "deleted",
          rebasedFrom: { version: 1, moved: [] }
        })
      })
    )

    it.effect("S000-R29 an object is not deleted with a relationship that somebody made since", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { from, to, knows } = yield* knowing(story)
        const { task } = yield* suggested(story, {
          tool: "delete_object",
          arguments: { objectId: from.id }
        })
        expect(task.staleness.added).toEqual([])
        const likes = yield* story.post("/relationships", { type: "LIKES", fromId: to.id, toId: from.id })
        const problem = yield* outdated(story, task)
        expect(problem.conflicts).toEqual([])
        expect(problem.relationships).toEqual([{ id: likes.id, type: "LIKES", fromId: to.id, toId: from.id }])
        expect((yield* story.get(`/tasks/${task.id}`)).staleness).toMatchObject({
          state: "outdated",
          moved: [],
          added: problem.relationships
        })
        yield* story.delete(`/relationships/${likes.id}`)
        expect((yield* approve(story, task)).status).toBe(200)
        expect((yield* story.ask("GET", `/relationships/${knows.id}`)).status).toBe(404)
      })
    )

    it.effect("S000-R29 a relationship that was brought back since is one that was made since", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { from, knows } = yield* knowing(story)
        yield* story.delete(`/relationships/${knows.id}`)
        const { task } = yield* suggested(story, {
          tool: "delete_object",
          arguments: { objectId: from.id }
        })
        yield* story.post(`/relationships/${knows.id}/restore`)
        expect((yield* outdated(story, task)).relationships).toMatchObject([{ id: knows.id }])
      })
    )

    it.effect("S000-R29 a key or a place that is taken is told with who has it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [from, to] = yield* twoPeople(story)
        const ends = { type: "KNOWS", fromId: from.id, toId: to.id }
        const { tasks } = yield* suggested(
          story,
          { tool: "create_object", arguments: { type: "Person", key: "joan", properties: {} } },
          { tool: "create_relationship", arguments: ends }
        )
        const joan = yield* story.post("/objects", { type: "Person", key: "joan", properties: { a: 1 } })
        const knows = yield* story.post("/relationships", ends)
        const answers = yield* Effect.forEach(tasks, (task) => approve(story, task))
        expect(answers.map(({ body, status }) => [status, body.reason, body.existingId])).toEqual([
          [409, "keyTaken", joan.id],
          [409, "relationshipExists", knows.id]
        ])
        expect(answers[0]?.body.detail).toContain(joan.id)
        expect((yield* story.get(`/tasks/${tasks[0].id}`)).status).toBe("pending")
      })
    )
  })

  describe("Requirement: Staleness, a person who has seen the move decides on it", () => {
    it.effect("S000-R29 values of one's own for the version that one has seen are applied", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        yield* change(story, person, { age: 36 })
        yield* outdated(story, task, { suggestedChanges: { data: { age: 3 } } })
        yield* outdated(story, task, { suggestedChanges: { data: { age: 3 }, baseVersion: null } })
        const seen = { data: { age: 37 }, baseVersion: 2 }
        const decided = yield* approve(story, task, { digest: task.digest, suggestedChanges: seen })
        expect([decided.status, decided.body.outcome]).toEqual([
          200,
          { entityId: person.id, version: 3, change: "updated" }
        ])
        expect(yield* propertiesOf(story, person)).toEqual({ age: 37 })
      })
    )

    it.effect("S000-R29 and refused when it moved again since", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        yield* change(story, person, { age: 36 }, { age: 40, name: "Ada" })
        const problem = yield* outdated(story, task, {
          suggestedChanges: { data: { age: 37 }, baseVersion: 2 }
        })
        expect(problem.conflicts).toEqual([{ pointer: "/age", base: 36, current: 40, suggested: 37 }])
      })
    )

    it.effect("S000-R29 a version that is not there is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { tasks } = yield* suggested(story, updating(person, { age: 2 }), {
          tool: "create_object",
          arguments: { type: "Person", properties: {} }
        })
        for (const [task, baseVersion] of [
          [tasks[0], 2],
          [tasks[1], 1]
        ]) {
          const body = { suggestedChanges: { data: { age: 3 }, baseVersion } }
          const answer = yield* approve(story, task, body)
          expect([answer.status, answer.body.errors]).toEqual([
            422,
            [{ pointer: "/suggestedChanges/baseVersion", message: expect.any(String) }]
          ])
        }
        for (const baseVersion of [0, -1, 1.5, "1", 2 ** 40]) {
          const body = { suggestedChanges: { data: { age: 3 }, baseVersion } }
          expect((yield* approve(story, tasks[0], body)).status).toBe(422)
        }
        expect((yield* story.get(`/tasks/${tasks[0].id}`)).status).toBe("pending")
      })
    )
  })
})

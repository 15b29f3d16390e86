/**
 * What every suggestion that waits says of the graph, before anybody decides.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, endedRuns, make, suggestionsOf, watcher } from "../testing/story-words.ts"
import { boss, handingOver, runThrough, spawning, worker } from "../testing/sub-agent-words.ts"
import { approve, suggested, updating } from "../testing/suggestion-words.ts"

/** The denial of each task as the list of what waits says it, oldest first; that of one task alone is the same. */
const denialsOf = Effect.fnUntraced(function* (story: Story) {
  const tasks: ReadonlyArray<Json> = (yield* story.get("/tasks?status=pending")).items.toReversed()
  const alone = yield* Effect.forEach(tasks, (task) => story.get(`/tasks/${task.id}`))
  expect(alone).toEqual(tasks)
  return tasks.map(({ denial }) => denial as string | null)
})

/** Each task is refused at approval with the sentence that it said before, and waits on. */
const refusedAsSaid = (story: Story, tasks: ReadonlyArray<Json>) =>
  Effect.forEach(tasks, ({ id }) =>
    Effect.gen(function* () {
      const { denial } = yield* story.get(`/tasks/${id}`)
      const { body, status } = yield* approve(story, { id })
      expect([status, body.reason, body.detail]).toEqual([409, "notPermitted", denial])
    })
  )

const twoPeople = (story: Story) => Effect.all([make(story, "Person"), make(story, "Person")])

layer(SharedServer.layer)((it) => {
  describe("Requirement: Staleness, said before the click", () => {
    it.effect("S000-R29 every suggestion that waits says how it stands, alone and in the list", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const people = yield* Effect.all(
          ["fresh", "rebasable", "outdated", "gone"].map((name) => make(story, "Person", { name, age: 1 }))
        )
        const { tasks } = yield* suggested(story, ...people.map((person) => updating(person, { age: 2 })))
        const [, rebasable, stale, gone] = people
        yield* change(story, rebasable, { name: "R." })
        yield* change(story, stale, { age: 3, name: "O." })
        yield* story.delete(`/objects/${gone.id}`)
        const nothing = { moved: [], conflicts: [], added: [], takenBy: null, evidenceChanged: [] }
        const expected = [
          { ...nothing, state: "fresh", currentVersion: 1 },
          { ...nothing, state: "rebasable", currentVersion: 2, moved: ["/name"] },
          { ...nothing, state: "outdated", currentVersion: 2, moved: ["/age", "/name"], conflicts: ["/age"] },
          { ...nothing, state: "gone", currentVersion: null }
        ]
        const alone = yield* Effect.forEach(tasks, (task) => story.get(`/tasks/${task.id}`))
        expect(alone.map(({ staleness }) => staleness)).toEqual(expected)
        const listed = yield* story.get("/tasks?status=pending")
        expect(listed.items.toReversed().map(({ staleness }: Json) => staleness)).toEqual(expected)
        expect((yield* approve(story, tasks[0])).body.staleness).toBeNull()
      })
    )

    it.effect("S000-R29 what a new object or relationship would meet is said as well", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [from, to] = yield* twoPeople(story)
        const ends = { fromId: from.id, toId: to.id }
        const { tasks } = yield* suggested(
          story,
          { tool: "create_object", arguments: { type: "Person", key: "joan", properties: {} } },
          { tool: "create_relationship", arguments: { type: "KNOWS", ...ends } },
          { tool: "create_relationship", arguments: { type: "LIKES", ...ends } }
        )
        const states = Effect.map(
          Effect.forEach(tasks, (task) => story.get(`/tasks/${task.id}`)),
          (now) => now.map(({ staleness }) => [staleness.state, staleness.takenBy])
        )
        expect(yield* states).toEqual(tasks.map(() => ["fresh", null]))
        const joan = yield* story.post("/objects", { type: "Person", key: "joan", properties: {} })
        const knows = yield* story.post("/relationships", { type: "KNOWS", ...ends })
        expect(yield* states).toEqual([
          ["outdated", joan.id],
          ["outdated", knows.id],
          ["fresh", null]
        ])
        yield* story.delete(`/objects/${to.id}`)
        expect((yield* states).slice(1)).toEqual([
          ["gone", null],
          ["gone", null]
        ])
      })
    )

    it.effect("S000-R29 evidence that moved is named with what it was and is, and nothing else is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [still, moved, gone, target] = yield* Effect.all(
          [1, 2, 3, 4].map((n) => make(story, "Person", { n }))
        )
        const reading = (object: Json) => ({ tool: "get_object", arguments: { objectId: object.id } })
        const agent = yield* story.post(
          "/agents",
          watcher({
            executionMode: "suggest",
            reactionConfig: { objectTypes: ["Start"], events: ["created"] },
            model: scripted([
              { when: "step == 0", calls: [still, moved, gone].map(reading) },
              { when: "step == 1", calls: [updating(target, { n: 5 })] },
              { say: "Done." }
            ])
          })
        )
        const start = yield* make(story, "Start")
        yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        const read = (object: Json) => ({ objectId: object.id, type: object.type, version: 1 })
        expect(new Set(task.evidence)).toEqual(new Set([still, moved, gone, start].map(read)))
        expect(task.staleness.evidenceChanged).toEqual([])
        yield* change(story, moved, { n: 20 }, { n: 21 })
        yield* story.delete(`/objects/${gone.id}`)
        const { staleness } = yield* story.get(`/tasks/${task.id}`)
        expect(staleness.state).toBe("fresh")
        expect(new Set(staleness.evidenceChanged)).toEqual(
          new Set([
            { ...read(moved), currentVersion: 3 },
            { ...read(gone), currentVersion: null }
          ])
        )
      })
    )

    it.effect("S000-R29 what the run itself has written since it read is no news to it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [person, other] = yield* twoPeople(story)
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: { objectTypes: ["Start"], events: ["created"] },
            model: scripted([
              { when: "step == 0", calls: [{ tool: "get_object", arguments: { objectId: person.id } }] },
              { when: "step == 1", calls: [updating(person, { seen: true })] },
              {
                when: "step == 2",
                calls: [
                  {
                    tool: "update_object",
                    arguments: { objectId: other.id, properties: { n: 1 }, suggest: true }
                  }
                ]
              },
              { say: "Done." }
            ])
          })
        )
        yield* make(story, "Start")
        yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        expect(task.staleness.evidenceChanged).toEqual([])
        yield* change(story, person, { seen: false })
        expect((yield* story.get(`/tasks/${task.id}`)).staleness.evidenceChanged).toMatchObject([
          { objectId: person.id, version: 2, currentVersion: 3 }
        ])
      })
    )

    it.effect("S000-R29 a suggestion is based on the newest 200 of what its run had read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const types = ["A", "B", "C", "D", "E"]
        const people = types.flatMap((type) => Array.from({ length: 45 }, () => type))
        yield* Effect.forEach(people, (type) => make(story, type), { concurrency: 16 })
        const target = yield* make(story, "Person")
        const agent = yield* story.post(
          "/agents",
          watcher({
            executionMode: "suggest",
            reactionConfig: { objectTypes: ["Start"], events: ["created"] },
            model: scripted([
              {
                when: "step == 0",
                calls: types.map((type) => ({ tool: "search_objects", arguments: { type, limit: 45 } }))
              },
              { when: "step == 1", calls: [updating(target, { age: 1 })] },
              { say: "Done." }
            ])
          })
        )
        yield* make(story, "Start")
        yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        const counted = types.map((type) => task.evidence.filter((read: Json) => read.type === type).length)
        expect([task.evidence.length, counted]).toEqual([200, [20, 45, 45, 45, 45]])
      })
    )
  })

  describe("Requirement: what the agent's capabilities forbid by now, said before the click", () => {
    it.effect("S000-R29 each kind of change says which flag forbids it, as the approval would", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = yield* twoPeople(story)
        const ends = { fromId: ada.id, toId: grace.id }
        const knows = yield* story.post("/relationships", { type: "KNOWS", ...ends })
        const envies = yield* story.post("/relationships", { type: "ENVIES", ...ends })
        const lone = yield* make(story, "Person")
        const { agent, tasks } = yield* suggested(
          story,
          { tool: "create_object", arguments: { type: "Note", properties: {} } },
          updating(ada, { age: 2 }),
          { tool: "delete_object", arguments: { objectId: lone.id } },
          { tool: "create_relationship", arguments: { type: "ADMIRES", ...ends } },
          { tool: "update_relationship", arguments: { relationshipId: knows.id, properties: { since: 1 } } },
          { tool: "delete_relationship", arguments: { relationshipId: envies.id } }
        )
        expect(yield* denialsOf(story)).toEqual(tasks.map(() => null))
        const capabilities = Object.fromEntries(
          ["Create", "Update", "Delete"].flatMap((verb) =>
            ["Objects", "Relationships"].map((what) => [`can${verb}${what}`, false])
          )
        )
        yield* story.patch(`/agents/${agent.id}`, { capabilities })
        expect(yield* denialsOf(story)).toEqual(
          [
            "canCreateObjects",
            "canUpdateObjects",
            "canDeleteObjects",
            "canCreateRelationships",
            "canUpdateRelationships",
            "canDeleteRelationships"
          ].map((flag) => expect.stringContaining(flag))
        )
        yield* refusedAsSaid(story, tasks)
        yield* story.patch(`/agents/${agent.id}`, { capabilities: { allowedObjectTypes: ["Company"] } })
        expect(yield* denialsOf(story)).toEqual(
          tasks.map((_, index) => expect.stringContaining(index === 0 ? "Note" : "Person"))
        )
        yield* refusedAsSaid(story, tasks)
        yield* story.patch(`/agents/${agent.id}`, { capabilities: null })
        expect(yield* denialsOf(story)).toEqual(tasks.map(() => null))
        expect((yield* approve(story, tasks[0])).body).toMatchObject({ status: "completed", denial: null })
      })
    )

    it.effect(
      "S000-R29 a deletion says that a relationship would go with it which the agent may not delete",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, grace] = yield* twoPeople(story)
          const acme = yield* make(story, "Company")
          yield* story.post("/relationships", { type: "KNOWS", fromId: grace.id, toId: ada.id })
          yield* story.post("/relationships", { type: "WORKS_AT", fromId: ada.id, toId: acme.id })
          const { agent, tasks } = yield* suggested(story, {
            tool: "delete_object",
            arguments: { objectId: ada.id }
          })
          yield* story.patch(`/agents/${agent.id}`, { capabilities: { allowedObjectTypes: ["Person"] } })
          expect(yield* denialsOf(story)).toEqual([expect.stringMatching(/WORKS_AT.*Company/)])
          yield* refusedAsSaid(story, tasks)
          yield* story.patch(`/agents/${agent.id}`, { capabilities: { canDeleteRelationships: false } })
          expect(yield* denialsOf(story)).toEqual([expect.stringMatching(/KNOWS.*canDeleteRelationships/)])
          yield* refusedAsSaid(story, tasks)
        })
    )

    it.effect("S000-R29 what an agent suggested that acts for another says what the other may not do", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person")
        yield* story.post(
          "/agents",
          worker("worker", handingOver(updating(person, { age: 2 })), { executionMode: "suggest" })
        )
        const above = yield* boss(story, [spawning("worker")])
        yield* runThrough(story, above)
        const tasks = yield* suggestionsOf(story, 1)
        expect(yield* denialsOf(story)).toEqual([null])
        yield* story.patch(`/agents/${above.id}`, { capabilities: { canUpdateObjects: false } })
        expect(yield* denialsOf(story)).toEqual([expect.stringMatching(/canUpdateObjects.*boss/)])
        yield* refusedAsSaid(story, tasks)
      })
    )

    it.effect(
      "S000-R29 what may not be approved can be rejected, one by one and all of an agent in one go",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const people = yield* Effect.all([1, 2, 3].map((n) => make(story, "Person", { n })))
          const { agent, tasks } = yield* suggested(
            story,
            ...people.map((person) => updating(person, { age: 2 }))
          )
          yield* story.patch(`/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } })
          expect((yield* story.post(`/tasks/${tasks[0].id}/reject`, {})).denial).toBeNull()
          yield* story.post(`/agents/${agent.id}/suggestions/reject`, {})
          const rejected = (yield* story.get("/tasks?status=rejected")).items
          expect(rejected.map(({ denial, status }: Json) => [status, denial])).toEqual(
            tasks.map(() => ["rejected", null])
          )
        })
    )
  })
})

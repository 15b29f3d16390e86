/**
 * What every suggestion that waits says of the graph, before anybody decides.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, endedRuns, make, suggestionsOf, watcher } from "../testing/story-words.ts"
import { approve, suggested, updating } from "../testing/suggestion-words.ts"

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
})

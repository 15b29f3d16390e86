/**
 * What people decided, and what waits for them, is known in a copy of a project as it was in the original.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { linesOf } from "../testing/import-words.ts"
import { eventually, type Json, type Story, storyIn } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, calling, endedRuns, make, watcher } from "../testing/story-words.ts"
import { pendingOf, reject, suggesting, updating } from "../testing/suggestion-words.ts"

/** A copy beside the original, whose ids are all taken. */
const copyOf = Effect.fnUntraced(function* (story: Story) {
  const { access, doors } = yield* SharedServer
  const { body } = yield* story.send("GET", `/api/projects/${story.projectId}/dump`)
  const answer = yield* doors.send("POST", "/api/restore", String(body), {
    "content-type": "application/octet-stream"
  })
  const last = linesOf(answer).at(-1)
  expect(last).toMatchObject({ type: "finished", keptIds: false })
  return storyIn(doors, access, last.project.id)
})

const named = (story: Story, path: string, name: string): Effect.Effect<Json> =>
  Effect.map(story.get(path), ({ items }) => items.find((one: Json) => one.name === name))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A copy of a project", () => {
    it.effect("knows what was rejected, though its ids are others", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story, { model: calling(updating(ada, { age: 2, friend: ada.id })) })
        const suggest = Effect.fnUntraced(function* (there: Story, id: string) {
          const begun = yield* there.post(`/agents/${id}/trigger`)
          const run = yield* eventually(there.get(`/runs/${begun.id}`), (seen) => seen.completedAt !== null)
          const [call] = yield* callsOf(there, run)
          return call?.result
        })
        expect(yield* suggest(story, agent.id)).toMatchObject({ status: "suggested" })
        const [task] = yield* pendingOf(story)
        yield* reject(story, task, { reason: "Not now" })
        expect(yield* suggest(story, agent.id)).toMatchObject({ reason: "rejectedBefore" })

        const copy = yield* copyOf(story)
        const { id } = yield* named(copy, "/agents", "suggester")
        expect(id).not.toBe(agent.id)
        yield* copy.patch(`/agents/${id}`, { enabled: true })
        expect(yield* suggest(copy, id)).toMatchObject({ reason: "rejectedBefore" })
        expect(yield* pendingOf(copy)).toEqual([])
      })
    )

    it.effect("knows a creation without a key that waits, and refines it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { age: 1 })
        const note = { tool: "create_object", arguments: { type: "Note", properties: { of: ada.id } } }
        const agent = yield* story.post(
          "/agents",
          watcher({
            name: "noter",
            executionMode: "suggest",
            reactionConfig: { objectTypes: ["Person"], events: ["updated"] },
            model: calling(note)
          })
        )
        yield* story.patch(`/objects/${ada.id}`, { properties: { age: 2 } })
        yield* endedRuns(story, agent, 1)
        const [waiting] = yield* pendingOf(story)
        expect(waiting).toMatchObject({ number: 1, revision: 1 })

        const copy = yield* copyOf(story)
        const noter = yield* named(copy, "/agents", "noter")
        yield* copy.patch(`/agents/${noter.id}`, { enabled: true })
        const [person] = (yield* copy.get("/objects?type=Person")).items
        yield* copy.patch(`/objects/${person.id}`, { properties: { age: 3 } })
        yield* endedRuns(copy, noter, 2)
        expect((yield* pendingOf(copy)).map(({ number, revision }) => [number, revision])).toEqual([[1, 2]])
      })
    )
  })
})

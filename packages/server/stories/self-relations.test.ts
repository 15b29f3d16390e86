/**
 * An object is not related to itself, whoever asks; what is so from before goes and comes back with its object.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { importLines, importLock, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { atTheDoor } from "../testing/person-words.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { suggesting, suggestingOnce } from "../testing/suggestion-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A relationship of an object to itself", () => {
    it.effect("is refused in the same words at every door", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* story.post("/objects", { type: "Person", key: "ada" })
        const ends = { fromId: ada.id, toId: ada.id }
        const posted = yield* story.ask("POST", "/relationships", { type: "KNOWS", ...ends })
        expectProblem(posted, 422, "/toId")
        const [{ message: sentence }, ...more] = posted.body.errors
        expect(more).toEqual([])

        const call = { tool: "create_relationship", arguments: { type: "KNOWS", ...ends, properties: {} } }
        for (const executionMode of ["execute", "suggest"]) {
          const agent = yield* suggesting(story, { name: executionMode, executionMode })
          const { result } = yield* suggestingOnce(story, agent, call)
          expect([executionMode, JSON.stringify(result)]).toEqual([
            executionMode,
            expect.stringContaining(sentence)
          ])
        }
        const told = yield* (yield* atTheDoor(story)).call("create_relationship", { type: "KNOWS", ...ends })
        expect([told.isError, JSON.stringify(told.result)]).toEqual([true, expect.stringContaining(sentence)])

        const end = { type: "Person", key: "ada" }
        const imported = yield* importLines(
          story,
          jsonl({ relationship: { type: "KNOWS", from: end, to: end } }, { type: "Person", key: "bob" })
        )
        expect(imported.at(-1)).toMatchObject({ type: "finished", created: 1, failed: 1 })
        expect(JSON.stringify(imported)).toContain(`/toId: ${sentence}`)
        expect((yield* story.get("/relationships")).items).toEqual([])
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect("is none of a lockfile's: a package that asks for itself is imported without", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const file = JSON.stringify({
          name: "shop",
          lockfileVersion: 3,
          packages: {
            "": { dependencies: { a: "1" } },
            "node_modules/a": { version: "1.0.0", dependencies: { a: "1" } }
          }
        })
        expect(yield* importLock(story, file)).toMatchObject({ created: 2, relationshipsCreated: 1 })
      })
    )

    it.effect("that is there from before goes with its object and comes back with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, bob] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const likes = yield* story.post("/relationships", { type: "LIKES", fromId: ada.id, toId: bob.id })
        yield* ask(story.access, "update kb.graph_relationships set to_id = from_id where id = $1", [
          likes.id
        ])
        yield* story.patch(`/relationships/${likes.id}`, { properties: { much: true } })
        yield* story.delete(`/objects/${ada.id}`)
        expectProblem(yield* story.ask("GET", `/relationships/${likes.id}`), 404)
        yield* story.post(`/objects/${ada.id}/restore`)
        expect(yield* story.get(`/relationships/${likes.id}`)).toMatchObject({
          version: 4,
          fromId: ada.id,
          toId: ada.id,
          properties: { much: true }
        })
      })
    )
  })
})

/**
 * A server is killed while it approves: decision and change are both there or neither, and the person can try again.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type MortalServer, prepareMortal, startMortal } from "../testing/mortal-servers.ts"
import { newProject, storyIn } from "../testing/platform.ts"
import { make } from "../testing/story-words.ts"
import { approve, suggestedBy, updating } from "../testing/suggestion-words.ts"

/** Every place that an approval passes, and whether it is kept by then. */
const places: ReadonlyArray<readonly [CrashPointName, "kept" | "undone"]> = [
  ["task.beforeChange", "undone"],
  ["graph.beforeCommit", "undone"],
  ["task.beforeCommit", "undone"],
  ["task.afterCommit", "kept"]
]

describe("A server that is killed while it approves", () => {
  it.live(
    "S000-R29 at every crash point both decision and change are there or neither, and the retry says which",
    () =>
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        let server: MortalServer = yield* startMortal(access)
        const { projectId } = yield* newProject(server, access)
        for (const [place, fate] of places) {
          const next = yield* prepareMortal(access)
          const story = storyIn(server, access, projectId)
          const person = yield* make(story, "Person", { age: 1 })
          const { task } = yield* suggestedBy(story, place, updating(person, { age: 2 }))
          yield* server.dieAt(place, 1)
          const answer = yield* Effect.exit(approve(story, task, { digest: task.digest }))
          expect([place, Exit.isFailure(answer)]).toEqual([place, true])
          yield* server.died

          server = yield* next
          const later = storyIn(server, access, projectId)
          const look = Effect.all({
            task: later.get(`/tasks/${task.id}`),
            object: later.get(`/objects/${person.id}`)
          })
          const found = yield* look
          expect([place, found.task.status, found.object.version]).toEqual(
            fate === "kept" ? [place, "completed", 2] : [place, "pending", 1]
          )
          const again = yield* approve(later, task, { digest: task.digest })
          expect([place, again.status, again.body.reason]).toEqual(
            fate === "kept" ? [place, 409, "alreadyDecided"] : [place, 200, undefined]
          )
          const after = yield* look
          expect([after.task.status, after.object.version, after.object.properties.age]).toEqual([
            "completed",
            2,
            2
          ])
        }
      }).pipe(Effect.scoped),
    240_000
  )
})

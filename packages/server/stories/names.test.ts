/**
 * Names that people give and others read: what cannot be seen in one is refused where it is given.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"

/** What could pass for another name, or stand in a line that is not its own. */
const unseen = ["a\u0001b", "a\u001b[31mb", "a\nb", "a\u2028b", "a\u202eb", "a\u200bb", "a\u00adb", " \t"]

const seen = ["The garden", "Zürich – Büro 2", "سلام\u200cها", "👩‍🚀 crew", "<b>shop</b>"]

layer(SharedServer.layer)("names", (it) => {
  describe("A name that people read", () => {
    it.effect("holds nothing that cannot be seen, whatever is named", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ name: "hooked", triggerType: "webhook", reactionConfig: null })
        )
        yield* story.post("/members", { userId: "admin", role: "admin" })
        const here = `/api/projects/${story.projectId}`
        const doors = [
          ["POST", "/api/projects", 200],
          ["PATCH", here, 200],
          ["POST", `${here}/tokens`, 100],
          ["POST", `${here}/agents/${agent.id}/webhooks`, 200]
        ] as const
        for (const [method, path, most] of doors) {
          for (const name of [...unseen, "", "x".repeat(most + 1)]) {
            const answer = yield* story.send(method, path, { name })
            expectProblem(answer, 422, "/name")
            expect([path, name, answer.body.errors[0].message]).toEqual([
              path,
              name,
              expect.stringMatching(new RegExp(`\\b${most}\\b`))
            ])
          }
          for (const name of seen)
            expect((yield* story.send(method, path, { name })).body).toMatchObject({ name })
        }
        for (const userId of ["a\u0000b", "a\nb", "a\u202eb"])
          expectProblem(yield* story.ask("POST", "/members", { userId, role: "viewer" }), 422, "/userId")
        expectProblem(yield* story.ask("POST", "/agents", watcher({ name: "a\u0007b" })), 422, "/name")
      })
    )
  })
})

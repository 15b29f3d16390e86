/**
 * What never comes to be a request, or names its host twice: told as any other problem, and never judged by half of it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { rawAnswer } from "../testing/raw-request.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** The problem of an answer as it came over the socket. */
const problemIn = (answer: string) => {
  const [head = "", body = ""] = answer.split("\r\n\r\n")
  expect(head.toLowerCase()).toContain("content-type: application/problem+json")
  const { detail, status, title, type } = JSON.parse(body)
  expect([head.split(" ")[1], typeof detail, typeof title]).toEqual([String(status), "string", "string"])
  return { status, type }
}

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A request that cannot be read as one", () => {
    it.effect("is answered with a problem document, at every door", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const malformed = "/problems/malformed-request"
        for (const path of ["/api/projects", "/health", `/api/projects/${story.projectId}/mcp`]) {
          const get = `GET ${path} HTTP/1.1`
          const asked = (...lines: ReadonlyArray<string>) =>
            Effect.map(rawAnswer(story, [...lines, "connection: close"]), problemIn)
          expect(yield* asked(get, "host: elsewhere.example")).toEqual({ status: 400, type: malformed })
          expect(yield* asked(get, `host: ${new URL(story.url).host}`)).toEqual({
            status: 400,
            type: malformed
          })
          expect(yield* asked(get, `x-long: ${"y".repeat(40_000)}`)).toEqual({
            status: 431,
            type: "about:blank"
          })
        }
        const answer = yield* rawAnswer(story, ["NONSENSE / HTTP/1.1"])
        expect(problemIn(answer)).toEqual({ status: 400, type: malformed })
        expect((yield* story.send("GET", "/health")).status).toBe(200)
      })
    )
  })
})

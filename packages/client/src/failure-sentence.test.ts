/**
 * The sentence for each way a request can fail.
 */
import { describe, expect, it } from "@effect/vitest"
import { InvalidInput, NotFound } from "@tropism/api/problems"
import type { ContextName } from "@tropism/domain/context-event"
import { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import { AnswerUnreadable, makeClient } from "./client.ts"
import { FeedLost, FeedRefused } from "./feed.ts"
import { failureSentence, isAbsent, isUnreachable, statusOf } from "./failure-sentence.ts"

const request = HttpClientRequest.get("http://tropism.test/")
/** What the system says of a connection, wrapped as some engines do. */
const failed = (code: string, asked = request) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request: asked,
      cause: new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) })
    })
  })
const unreachable = failed("ECONNREFUSED")
const teapot = new HttpClientError.HttpClientError({
  reason: new HttpClientError.StatusCodeError({
    request,
    response: HttpClientResponse.fromWeb(request, new Response("", { status: 418 }))
  })
})

/** A server that answers everything with what nobody asked for. */
const nonsensical = HttpClient.make((asked) =>
  Effect.succeed(HttpClientResponse.fromWeb(asked, Response.json({ nonsense: true })))
)

describe("failureSentence", () => {
  it("tells a missing server from one that says no", () => {
    expect(failureSentence(unreachable)).not.toBe(failureSentence(teapot))
    expect([unreachable, new FeedLost({ failures: 3, url: "" }), teapot].map(isUnreachable)).toEqual([
      true,
      true,
      false
    ])
  })

  it("tells a connection that broke from one that never was, and that a change may have been made", () => {
    const broken = [
      failed("ECONNRESET"),
      failed("ECONNRESET", HttpClientRequest.post("http://tropism.test/"))
    ]
    expect(broken.map(isUnreachable)).toEqual([true, true])
    expect(broken.map(isAbsent)).toEqual([false, false])
    const [read = "", changed = ""] = broken.map(failureSentence)
    expect(read).not.toBe(failureSentence(unreachable))
    // A change may have been made, so more is said of it.
    expect(changed.length).toBeGreaterThan(read.length)
    expect(["ENOTFOUND", "ECONNREFUSED"].map((code) => isAbsent(failed(code)))).toEqual([true, true])
  })

  it("prefers the detail of a problem to its title", () => {
    expect(failureSentence(new NotFound({}))).toBe(`${new NotFound({}).title}.`)
    expect(failureSentence(new NotFound({ detail: "No task has number 7." }))).toBe("No task has number 7.")
  })

  it("says where each fault of the input lies", () => {
    const problem = new InvalidInput({
      errors: [
        { pointer: "/prompt", message: "Missing" },
        { pointer: "/reactionConfig/where/a~1b", message: "Wrong" },
        { pointer: "asOf", message: "Too late" },
        { pointer: "", message: "Too much" }
      ]
    })
    expect(failureSentence(problem)).toBe(
      "prompt: Missing; reactionConfig › where › a/b: Wrong; asOf: Too late; Too much."
    )
  })

  it("reads the problem that refused a feed", () => {
    const refused = new FeedRefused({
      status: 404,
      answer: '{"status":404,"title":"Not found","detail":"No such run."}'
    })
    expect(failureSentence(refused)).toBe("No such run.")
    expect(statusOf(refused)).toBe(404)
  })

  it.effect("tells a request that does not fit the contract from an answer that does not", () =>
    Effect.gen(function* () {
      const client = yield* makeClient({ url: "http://tropism.test" })
      const params = {
        projectId: ProjectId.make("0197a1d2-0000-7000-8000-000000000001"),
        name: "talk" as ContextName
      }
      const unsent = yield* Effect.flip(
        client.contexts.addEvent({ params, payload: { type: "UserMessageEvent", content: "" } })
      )
      expect(failureSentence(unsent)).toContain("content: ")
      expect(unsent).not.toBeInstanceOf(AnswerUnreadable)
      const unread = yield* Effect.flip(client.contexts.get({ params }))
      expect(unread).toBeInstanceOf(AnswerUnreadable)
      expect([unsent, unread].map(statusOf)).toEqual([undefined, undefined])
      expect(failureSentence(unread)).not.toContain("content: ")
    }).pipe(Effect.provideService(HttpClient.HttpClient, nonsensical))
  )

  it("names the status when nothing else is known", () => {
    expect(failureSentence(teapot)).toContain("418")
    expect(failureSentence(new FeedRefused({ status: 401, answer: "<html>" }))).toContain("401")
  })
})

/**
 * The sentence for each way a request can fail.
 */
import { describe, expect, it } from "@effect/vitest"
import { InvalidInput, NotFound } from "@tropism/api/problems"
import { HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import { FeedLost, FeedRefused } from "./feed.ts"
import { failureSentence, isUnreachable, statusOf } from "./failure-sentence.ts"

const request = HttpClientRequest.get("http://tropism.test/")
const unreachable = new HttpClientError.HttpClientError({
  reason: new HttpClientError.TransportError({ request })
})
const teapot = new HttpClientError.HttpClientError({
  reason: new HttpClientError.StatusCodeError({
    request,
    response: HttpClientResponse.fromWeb(request, new Response("", { status: 418 }))
  })
})

describe("failureSentence", () => {
  it("tells a missing server from one that says no", () => {
    expect(failureSentence(unreachable)).toBe("No server answers there.")
    expect([unreachable, new FeedLost({ failures: 3, url: "" }), teapot].map(isUnreachable)).toEqual([
      true,
      true,
      false
    ])
  })

  it("prefers the detail of a problem to its title", () => {
    expect(failureSentence(new NotFound({}))).toBe("Not found.")
    expect(failureSentence(new NotFound({ detail: "No task has number 7." }))).toBe("No task has number 7.")
  })

  it("says where each fault of the input lies", () => {
    const problem = new InvalidInput({
      errors: [
        { pointer: "/prompt", message: "Missing" },
        { pointer: "", message: "Too much" }
      ]
    })
    expect(failureSentence(problem)).toBe("/prompt: Missing; Too much.")
  })

  it("reads the problem that refused a feed", () => {
    const refused = new FeedRefused({
      status: 404,
      answer: '{"status":404,"title":"Not found","detail":"No such run."}'
    })
    expect(failureSentence(refused)).toBe("No such run.")
    expect(statusOf(refused)).toBe(404)
  })

  it("names the status when nothing else is known", () => {
    expect(failureSentence(teapot)).toBe("The server answered with status 418.")
    expect(failureSentence(new FeedRefused({ status: 401, answer: "<html>" }))).toBe(
      "The server answered with status 401."
    )
  })
})

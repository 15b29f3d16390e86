/**
 * An answer that one server begins to tell and another one ends.
 */
import { expect, it } from "vitest"
import { createClient } from "../src/plain/create-client.ts"
import { isProblem } from "../src/plain/problem.ts"

const event = (name: string, json: unknown): string => `event: ${name}\ndata: ${JSON.stringify(json)}\n\n`

const begun = event("begun", { conversationId: "c" })
const words = (text: string) => event("words", { text })
const leaving = { type: "/problems/unavailable", title: "…", status: 503, detail: "The server stops" }
const fault = { type: "/problems/server-fault", title: "…", status: 500, detail: "Kept" }
const busy = { type: "/problems/conflict", title: "…", status: 409, reason: "keyBusy", detail: "At work" }
const done = { type: "done", answer: { status: "completed", response: "Good morning." } }

/** A stream, after which the next connection is made at once. */
const streamed = (...events: ReadonlyArray<string>): Response =>
  new Response(`retry: 1\n\n${events.join("")}`, {
    headers: { "content-type": "text/event-stream", "x-request-id": "r1" }
  })

/** What is told of a message whose connections are answered like this, and the keys under which it was sent. */
const saying = (...answers: ReadonlyArray<Response>) => {
  const keys: Array<string | null> = []
  const answer = (_input: string | URL | Request, init?: RequestInit) => {
    keys.push(new Headers(init?.headers).get("idempotency-key"))
    return Promise.resolve(answers[keys.length - 1] ?? streamed())
  }
  const client = createClient({
    url: "http://tropism.test",
    project: "p",
    fetch: Object.assign(answer, { preconnect: fetch.preconnect })
  })
  const pieces = client.chatEvents({ agentId: "a", message: "Hello" })
  const told: Array<unknown> = []
  const hear = async () => {
    for await (const piece of pieces) told.push(piece)
  }
  return { keys, told, hear }
}

const whole = [
  { type: "begun", conversationId: "c" },
  { type: "words", text: "Good " },
  { type: "words", text: "morning." },
  done
]

it.each([
  ["stops", leaving],
  ["has failed", fault]
])("goes on under its key where a server says in the middle of it that it %s", async (_, problem) => {
  const { hear, keys, told } = saying(
    streamed(begun, words("Good "), event("error", problem)),
    streamed(begun, words("Good morning."), event("done", done.answer))
  )
  await hear()
  expect(told).toEqual(whole)
  expect(keys).toEqual([keys[0], keys[0]])
  expect(keys[0]).toMatch(/\S/)
})

it("waits where an earlier connection's request is still at work under the key", async () => {
  const headers = { "content-type": "application/problem+json", "retry-after": "2" }
  const { hear, keys, told } = saying(
    streamed(begun, words("Good ")),
    new Response(JSON.stringify(busy), { status: 409, headers }),
    streamed(begun, words("Good morning."), event("done", done.answer))
  )
  await hear()
  expect(told).toEqual(whole)
  expect(new Set(keys).size).toBe(1)
})

it("tells what no other connection mends as the problem that it is, and is heard again under its key", async () => {
  const lost = { type: "/problems/unauthorized", title: "…", status: 401, detail: "Not any more" }
  const { hear, keys, told } = saying(
    streamed(begun, words("Good "), event("error", lost)),
    streamed(begun, words("Good morning."), event("done", done.answer))
  )
  const problem = await hear().catch((error: unknown) => error)
  expect(isProblem(problem, "unauthorized") && [problem.status, problem.detail, problem.requestId]).toEqual([
    401,
    "Not any more",
    "r1"
  ])
  told.length = 0
  await hear()
  expect(told).toEqual([whole[0], { type: "words", text: "Good morning." }, done])
  expect(new Set(keys).size).toBe(1)
})

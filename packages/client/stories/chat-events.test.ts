/**
 * An answer that one server begins to tell and another one ends.
 */
import { expect, it } from "vitest"
import { createClient } from "../src/plain/create-client.ts"

const event = (name: string, json: unknown): string => `event: ${name}\ndata: ${JSON.stringify(json)}\n\n`

const begun = event("begun", { conversationId: "c" })
const leaving = { type: "/problems/unavailable", title: "…", status: 503, detail: "The server stops" }
const done = { type: "done", answer: { status: "completed", response: "Good morning." } }

it("goes on under its key where a server says in the middle of it that it stops", async () => {
  const streams = [
    [begun, event("words", { text: "Good " }), event("error", leaving)],
    [begun, event("words", { text: "Good morning." }), event("done", done.answer)]
  ]
  const keys: Array<string | null> = []
  const answer = (_input: string | URL | Request, init?: RequestInit) => {
    keys.push(new Headers(init?.headers).get("idempotency-key"))
    const text = streams.shift()?.join("") ?? ""
    return Promise.resolve(new Response(text, { headers: { "content-type": "text/event-stream" } }))
  }
  const client = createClient({
    url: "http://tropism.test",
    project: "p",
    fetch: Object.assign(answer, { preconnect: fetch.preconnect })
  })
  const told: Array<unknown> = []
  for await (const piece of client.chatEvents({ agentId: "a", message: "Hello" })) told.push(piece)
  expect(told).toEqual([
    { type: "begun", conversationId: "c" },
    { type: "words", text: "Good " },
    { type: "words", text: "morning." },
    done
  ])
  expect(keys).toEqual([keys[0], keys[0]])
  expect(keys[0]).toMatch(/\S/)
})

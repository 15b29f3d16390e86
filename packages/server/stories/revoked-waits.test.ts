/**
 * Whoever waits for an answer and loses the token meanwhile is not told it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/limits.ts"
import { chat, newAssistant } from "../testing/chat-words.ts"
import { type EventStream, openStream } from "../testing/event-stream.ts"
import { opening, sendMessage } from "../testing/mcp-clients.ts"
import { addressOf } from "../testing/mcp-extension-words.ts"
import { newModel, sendCompletion } from "../testing/openai-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** The secret comes when the token has been revoked for long. */
const late = scripted([{ say: "The secret.", latencyMs: streamLimits.permitIntervalMs * 2.5 }])

/** A project with somebody who will lose the token. */
const withHearer = Effect.gen(function* () {
  const story = yield* newStoryHere
  return { story, hearer: yield* asUser(story, "editor", null, `hearer-${story.projectId}`) }
})

const revoke = ({ access, token }: Story) =>
  ask(access, "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')", [
    token
  ])

const runWith = (story: Story, statuses: ReadonlyArray<string>) =>
  asTimePasses(100, story.get("/runs"), ({ items: [run] }) => statuses.includes(run?.status))

/** The token is revoked and half a minute goes by. */
const revoked = Effect.fnUntraced(function* (story: Story, hearer: Story) {
  yield* runWith(story, ["running"])
  yield* revoke(hearer)
  expect((yield* hearer.send("GET", "/api/me")).status).toBe(401)
  yield* TestClock.adjust(streamLimits.permitIntervalMs)
})

/** The agent says it all the same; nobody heard it. */
const saidBehind = (story: Story) =>
  asTimePasses(5_000, story.get("/runs"), ({ items: [run] }) => run?.status === "completed")

/** An agent that is set to work by hand. */
const newWorker = (story: Story) =>
  story.post("/agents", watcher({ name: "worker", triggerType: "manual", reactionConfig: null, model: late }))

const streamOf = (story: Story, path: string, body: unknown) =>
  openStream(story, `/api/projects/${story.projectId}${path}`, undefined, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })

/** A stream that is cut off before the secret is said. */
const cutOff = Effect.fnUntraced(function* (story: Story, hearer: Story, stream: EventStream) {
  yield* stream.until((heard) => heard.length > 0)
  yield* revoked(story, hearer)
  yield* stream.ended
  yield* saidBehind(story)
  expect(JSON.stringify(stream.heard)).not.toContain("secret")
})

const hello = (model: string, isStreamed: boolean) => ({
  model,
  stream: isStreamed,
  messages: [{ role: "user", content: "Hello" }]
})

layer(SharedServer.layer)((it) => {
  describe("Whoever loses the token while an answer is made", () => {
    it.effect("hears no more of a chat's stream within half a minute, and the agent goes on", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        const agent = yield* newAssistant(story, late)
        const stream = yield* streamOf(hearer, "/chat", { agentId: agent.id, message: "Hello" })
        yield* cutOff(story, hearer, stream)
        // Like a stream that was cut: whoever asks again learns why.
        expect(stream.heard.map(({ name }) => name)).toEqual(["begun"])
      })
    )

    it.effect("is told of a completion's stream, last, that the token is none", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        yield* newModel(story, "clerk", late)
        const stream = yield* streamOf(hearer, "/v1/chat/completions", hello("clerk", true))
        yield* cutOff(story, hearer, stream)
        expect(stream.heard.at(-1)?.json.error).toMatchObject({ code: "invalid_api_key" })
      })
    )

    it.effect("is refused what is waited for as a whole", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        const agent = yield* newAssistant(story, late)
        const waiting = yield* Effect.forkChild(chat(hearer, { agentId: agent.id, message: "Hello" }))
        yield* revoked(story, hearer)
        expectProblem(yield* Fiber.join(waiting), 401)
        yield* saidBehind(story)
      })
    )

    it.effect("is refused a completion that is waited for as a whole", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        yield* newModel(story, "clerk", late)
        const waiting = yield* Effect.forkChild(sendCompletion(hearer, hello("clerk", false)))
        yield* revoked(story, hearer)
        const { body, status } = yield* Fiber.join(waiting)
        expect([status, body.error]).toMatchObject([401, { code: "invalid_api_key" }])
        yield* saidBehind(story)
      })
    )

    it.effect("is refused the end of a run that is waited for where it was begun", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        const agent = yield* newWorker(story)
        const waiting = yield* Effect.forkChild(hearer.ask("POST", `/agents/${agent.id}/trigger`))
        yield* revoked(story, hearer)
        yield* saidBehind(story)
        const answer = yield* Fiber.join(waiting)
        expectProblem(answer, 401)
        expect(yield* story.get("/runs")).toMatchObject({ items: [{ agentId: agent.id }] })
      })
    )

    it.effect("is told no result of a task", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        const agent = yield* newWorker(story)
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        const { headers } = yield* sendMessage(hearer, addressOf(story), opening)
        const asked = { jsonrpc: "2.0", id: 2, method: "tasks/result", params: { taskId: run.id } }
        const waiting = yield* Effect.forkChild(
          sendMessage(hearer, addressOf(story), asked, {
            "mcp-session-id": headers.get("mcp-session-id") ?? "",
            "mcp-protocol-version": "2025-11-25"
          })
        )
        yield* revoked(story, hearer)
        const { messages } = yield* Fiber.join(waiting)
        yield* saidBehind(story)
        expect(messages.filter(({ result }) => result !== undefined)).toEqual([])
        expect(JSON.stringify(messages)).not.toContain("secret")
      })
    )
  })

  describe("Whoever keeps the token", () => {
    it.effect("is told all, although the database could not say for a moment that it is good", () =>
      Effect.gen(function* () {
        const { hearer, story } = yield* withHearer
        const agent = yield* newAssistant(story, late)
        const stream = yield* streamOf(hearer, "/chat", { agentId: agent.id, message: "Hello" })
        yield* stream.until((heard) => heard.length > 0)
        yield* runWith(story, ["running"])
        const principals = "execute on function kb.find_principal"
        yield* ask(story.access, `revoke ${principals} from tropism_server`)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        for (let times = 0; times < 5; times += 1)
          expect((yield* hearer.send("GET", "/api/me")).status).toBe(500)
        yield* ask(story.access, `grant ${principals} to tropism_server`)
        yield* saidBehind(story)
        yield* stream.until((heard) => heard.at(-1)?.name === "done")
        expect(stream.heard.at(-1)?.json.response).toBe("The secret.")
      })
    )
  })
})

/**
 * A request that nobody wants any more ends at the provider: its server sees the connection closed.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import { answered, chat, keyed } from "../testing/chat-words.ts"
import { firstOf } from "../testing/context-words.ts"
import { messagesOf } from "../testing/conversation-words.ts"
import { sendCompletion, streamedWords } from "../testing/openai-words.ts"
import { eventually, type Json, type Story, storyIn } from "../testing/platform.ts"
import { answering, hanging, newProviderStory } from "../testing/provider-story.ts"
import { couriers } from "../testing/server-connections.ts"
import { asTimePasses, passing } from "../testing/shared-server.ts"
import { begin, partialOf, runLog } from "../testing/time-words.ts"

const isPaused = (run: Json) => run.status === "paused"

const isDone = (deferred: Deferred.Deferred<void>) => Deferred.isDone(deferred)

const isKept = (text: string | null) => text === "Half a sentence"

const yes = (done: boolean) => done

describe("Requirement: Timeout Enforcement, over the wire", () => {
  it.effect("S002-R26, R28 at the timeout the request is aborted, and the last one may call no tools", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory(
          [hanging("The first page says"), answering("I have read one page.")],
          { defaultTimeoutMs: 5_000 }
        )
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        const paused = yield* asTimePasses(500, story.get(`/runs/${run.id}`), isPaused)
        expect(paused).toMatchObject({ pauseReason: "timeout", summary: "I have read one page." })
        expect(yield* isDone(provider.hungUp)).toBe(true)
        const [first, last] = provider.requests.map(({ body }) => body as Json)
        expect([first.tool_choice, last.tool_choice]).toEqual(["auto", "none"])
        const stop = firstOf(yield* runLog(story, run), "SoftStopEvent")
        expect(stop).toMatchObject({ reason: "timeout", partialText: "The first page says" })
        const [partial, asked] = last.messages.slice(-2).map((each: Json) => JSON.stringify(each.content))
        expect(partial).toContain("The first page says")
        expect(asked).toContain(JSON.stringify(stop.content).slice(1, -1))
      })
    )
  )

  it.effect(
    "S002-R29, R31 after the grace the last request is aborted as well, and what was said is kept",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { agent, provider, story } = yield* newProviderStory(
            [answering(""), { kind: "silence" }, hanging("A summary that")],
            { defaultTimeoutMs: 5_000, flowType: "loop", maxIterations: 2 }
          )
          const run = yield* begin(story, agent)
          const paused = yield* asTimePasses(500, story.get(`/runs/${run.id}`), isPaused)
          expect(paused).toMatchObject({ pauseReason: "timeout", summary: "A summary that", stepCount: 1 })
          expect(provider.requests).toHaveLength(3)
          expect(yield* isDone(provider.hungUp)).toBe(true)
        })
      )
  )
})

/** An agent that is saying something when its time is up. */
const talkative = newProviderStory([hanging("Once upon a"), answering("In short.")], {
  defaultTimeoutMs: 60_000
})

/** Lets the time of the one run pass while it speaks, and answers its log when it rests. */
const timeUp = Effect.fnUntraced(function* (story: Story) {
  const run = (yield* eventually(story.get("/runs"), ({ items }) => items.length === 1)).items[0]
  yield* asTimePasses(10, partialOf(story, run), (text) => text === "Once upon a")
  // And then no more: the last answer has as long as it takes.
  yield* passing(60_000, 1_000)
  yield* eventually(story.get(`/runs/${run.id}`), isPaused)
  return yield* runLog(story, run)
})

describe("Requirement: what was broken off when time was up is told", () => {
  it.effect("in the messages and the export of a conversation, before the last words", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, story } = yield* talkative
        const body = { agentId: agent.id, message: "Tell" }
        const { conversationId: id } = (yield* chat(story, body, keyed("k"), "?wait=false")).body
        expect(firstOf(yield* timeUp(story), "SoftStopEvent").partialText).toBe("Once upon a")
        expect(yield* answered(story, body, keyed("k"))).toMatchObject({
          status: "interrupted",
          response: expect.stringMatching(/^In short\.\n\n\S/)
        })
        const { items } = yield* messagesOf(story, { id })
        expect(items.map(({ content, role }) => [role, content])).toEqual([
          ["user", "Tell"],
          ["assistant", "Once upon a"],
          ["assistant", "In short."]
        ])
        expect((yield* story.get(`/conversations/${id}/export`)).messages).toEqual(items)
      })
    )
  )

  it.effect("at OpenAI's door in the same words as it is made, whole, and when it is told again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { story } = yield* talkative
        const send = (stream: boolean) =>
          sendCompletion(
            story,
            { model: "speaker", messages: [{ role: "user", content: "Tell" }], stream },
            keyed("k")
          )
        const made = yield* Effect.forkChild(send(true))
        yield* timeUp(story)
        const words = "Once upon a\n\nIn short."
        expect(streamedWords(yield* Fiber.join(made))).toBe(words)
        const whole = yield* send(false)
        expect(whole.body.choices[0]).toMatchObject({ message: { content: words }, finish_reason: "length" })
        expect(streamedWords(yield* send(true))).toBe(words)
      })
    )
  )
})

describe("Requirement: Agent Run Lifecycle Tracking, over the wire", () => {
  it.effect("S002-R16, R17 Scenario: Cancelled execution: a cancel aborts the request at once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([hanging("Half a sentence")])
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(10, partialOf(story, run), isKept)
        const cancelled = yield* story.post(`/runs/${run.id}/cancel`)
        // The clock stands still: no heartbeat told the worker.
        yield* eventually(isDone(provider.hungUp), yes)
        expect(cancelled).toMatchObject({ status: "cancelled", summary: "Half a sentence" })
        expect(firstOf(yield* runLog(story, run), "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "cancelled",
          partialText: "Half a sentence"
        })
      })
    )
  )

  it.effect("S002-R16, R17 … also when another server than the one at work is told to cancel", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, another, provider, story } = yield* newProviderStory([hanging("Half a sentence")])
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(10, partialOf(story, run), isKept)
        const other = storyIn(yield* another, story.access, story.projectId)
        yield* eventually(couriers(story.access), (pids) => pids.length === 2)
        const cancelled = yield* other.post(`/runs/${run.id}/cancel`)
        expect(cancelled).toMatchObject({ status: "cancelled", summary: "Half a sentence" })
        // Word goes round within milliseconds; the next heartbeat would be seconds away.
        const before = yield* Clock.currentTimeMillis
        yield* asTimePasses(5, isDone(provider.hungUp), yes)
        expect((yield* Clock.currentTimeMillis) - before).toBeLessThan(5_000)
      })
    )
  )
})

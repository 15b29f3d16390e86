/** How a script speaks, and what is done when an attempt goes wrong. All time is virtual. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import type { ScriptRule } from "@tropism/domain/script"
import { Clock, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ask, asking, modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { modelLimits } from "../limits.ts"
import type { ModelFailure, ModelPart } from "./model-request.ts"
import { Models } from "./models.ts"

const scripted = (rule: ScriptRule, more: Partial<ModelConfig> = {}): ModelConfig => ({
  provider: "scripted",
  name: "test",
  script: { rules: [rule] },
  ...more
})

/** The parts of an answer with the virtual time of each, until a finish or a failure. */
const timeline = (model: ModelConfig, request = asking("hi")) =>
  Effect.gen(function* () {
    const seen: Array<{ readonly atMs: number; readonly part: ModelPart | ModelFailure }> = []
    const note = (part: ModelPart | ModelFailure) =>
      Effect.map(Clock.currentTimeMillis, (atMs) => void seen.push({ atMs, part }))
    const resolved = yield* (yield* Models).resolve({ agentName: "tester", model })
    const fiber = yield* resolved
      .request(request)
      .pipe(Stream.runForEach(note), Effect.catch(note), Effect.forkChild)
    // The attempt must be waiting before time moves.
    yield* Effect.repeat(Effect.yieldNow, { times: 200 })
    yield* TestClock.adjust("2 hours")
    yield* Fiber.join(fiber)
    return seen
  })

describe("a script speaks at its pace", () => {
  it.effect("after its latency, a word at a time", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(scripted({ say: "aaaa bbb cc", latencyMs: 1000, tokensPerSecond: 2 }))
      // "aaaa" is one token, " bbb" one, " cc" one: half a second each.
      expect(
        seen.map(({ atMs, part }) => [
          atMs,
          "_tag" in part ? "failure" : part.type === "text" ? part.delta : part.type
        ])
      ).toEqual([
        [1500, "aaaa"],
        [2000, " bbb"],
        [2500, " cc"],
        [2500, "finish"]
      ])
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("and at once without one", () =>
    Effect.gen(function* () {
      const parts = yield* ask(scripted({ say: "one two three" }), asking("hi"))
      expect(parts[0]).toEqual({ type: "text", delta: "one two three" })
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("and gives its tool calls before the finish, with a count of tokens", () =>
    Effect.gen(function* () {
      const tools = [{ name: "search_objects", inputSchema: { type: "object" } }]
      const parts = yield* ask(
        scripted({ say: "Looking.", calls: [{ tool: "search_objects", arguments: { limit: 3 } }] }),
        asking("hi", { tools })
      )
      expect(parts).toEqual([
        { type: "text", delta: "Looking." },
        { type: "toolCall", id: "call_1_0_0", name: "search_objects", arguments: { limit: 3 }, fault: null },
        {
          type: "finish",
          reason: "tool-calls",
          usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
          isUsageEstimated: false,
          costMicros: 0,
          cachedCostMicros: 0,
          provider: "scripted",
          name: "test"
        }
      ])
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("and sees no tool where their use is forbidden", () =>
    Effect.gen(function* () {
      const tools = [{ name: "search_objects", inputSchema: { type: "object" } }]
      const model = scripted({ say: "[{{ tools | join: ',' }}]" })
      expect(textOf(yield* ask(model, asking("hi", { tools })))).toBe("[search_objects]")
      expect(textOf(yield* ask(model, asking("hi", { tools, toolChoice: "none" })))).toBe("[]")
    }).pipe(Effect.provide(modelsIn({})))
  )
})

describe("an attempt that fails before it said anything", () => {
  it.effect("is made again, with longer and longer pauses, a bounded number of times", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(scripted({ fault: { kind: "error", message: "out of order" } }))
      expect(seen).toHaveLength(1)
      expect(seen[0]?.part).toMatchObject({
        _tag: "ModelFailure",
        reason: "unavailable",
        message: "out of order",
        outputBegan: false,
        provider: "scripted"
      })
      // 500 + 1000 + 2000 ms, each off by at most a fifth.
      expect(seen[0]?.atMs).toBeGreaterThanOrEqual(2_800)
      expect(seen[0]?.atMs).toBeLessThanOrEqual(4_200)
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("is answered by the fallback, which signs for itself", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(
        scripted(
          { fault: { kind: "rateLimited" } },
          { fallback: { provider: "scripted", name: "daily-digest" } }
        )
      )
      expect(seen[0]?.part).toMatchObject({ type: "toolCall", name: "search_objects" })
      expect(seen.at(-1)?.part).toMatchObject({ type: "finish", provider: "scripted", name: "daily-digest" })
      expect(seen[0]?.atMs).toBeGreaterThanOrEqual(2_800)
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("says why its fallback could not help", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(
        scripted({ fault: { kind: "rateLimited" } }, { fallback: { provider: "openai", name: "gpt-4o" } })
      )
      expect(seen[0]?.part).toMatchObject({
        reason: "rateLimited",
        message: naming('"rateLimited"', "openai:gpt-4o", "OPENAI_API_KEY")
      })
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("by silence is given up in time", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(scripted({ fault: { kind: "hang" } }))
      expect(seen[0]?.part).toMatchObject({ reason: "silent", message: expect.stringMatching(/\b240\b/) })
      const attempts = modelLimits.maxRetries + 1
      expect(seen[0]?.atMs).toBeGreaterThanOrEqual(attempts * modelLimits.firstPieceTimeoutMs)
      expect(seen[0]?.atMs).toBeLessThan(attempts * modelLimits.firstPieceTimeoutMs + 5_000)
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("by a script's own mistake is not made again", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(scripted({ when: "message" }))
      expect(seen.map(({ atMs }) => atMs)).toEqual([0])
      expect(seen[0]?.part).toMatchObject({ reason: "refused", isRetryable: false })
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("by the context's own timeout is not made again", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(
        scripted({ say: "late", latencyMs: 5_000 }),
        asking("hi", { timeoutMs: 2_000 })
      )
      expect(seen.map(({ atMs }) => atMs)).toEqual([2_000])
      expect(seen[0]?.part).toMatchObject({
        reason: "timeout",
        message: expect.stringMatching(/\b2\b/)
      })
    }).pipe(Effect.provide(modelsIn({})))
  )
})

describe("an answer that breaks off", () => {
  it.effect("fails and is not begun again", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(
        scripted({ say: "half and half", calls: [{ tool: "t", arguments: {} }], fault: { kind: "cut" } })
      )
      expect(seen.map(({ part }) => part)).toEqual([
        { type: "text", delta: "half an" },
        expect.objectContaining({ reason: "cut", outputBegan: true, isRetryable: false })
      ])
      expect(seen[1]?.atMs).toBe(0)
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("is not handed to the fallback", () =>
    Effect.gen(function* () {
      const seen = yield* timeline(
        scripted(
          { say: "half and half", fault: { kind: "cut" } },
          { fallback: { provider: "scripted", name: "daily-digest" } }
        )
      )
      expect(seen.at(-1)?.part).toMatchObject({ reason: "cut", provider: "scripted" })
    }).pipe(Effect.provide(modelsIn({})))
  )

  it.effect("at its own slow pace counts as time, not as silence", () =>
    Effect.gen(function* () {
      const say = Array.from({ length: 40 }, () => "word").join(" ")
      const seen = yield* timeline(scripted({ say, tokensPerSecond: 0.1 }))
      expect(seen.at(-1)?.part).toMatchObject({ type: "finish" })
    }).pipe(Effect.provide(modelsIn({})))
  )
})

it.effect("a context that folds to no prompt is refused, not thrown", () =>
  Effect.gen(function* () {
    const resolved = yield* (yield* Models).resolve({ agentName: "tester", model: scripted({ say: "x" }) })
    const broken = JSON.parse('[{"role": "nobody"}]')
    const failure = yield* Effect.flip(Stream.runDrain(resolved.request({ messages: broken, tools: [] })))
    expect(failure).toMatchObject({ reason: "refused", outputBegan: false })
  }).pipe(Effect.provide(modelsIn({})))
)

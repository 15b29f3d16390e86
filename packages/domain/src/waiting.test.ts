/**
 * The rules by which events wait: instants and what goes together.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineReaction, type ReactionConfig } from "./reaction.ts"
import {
  dueMs,
  firstDueMs,
  firstWait,
  isDroppedAtWork,
  isImmediate,
  standsInLine,
  takesLine,
  waitSentences
} from "./waiting.ts"

const rule = (overrides: Partial<ReactionConfig> = {}): ReactionConfig => ({
  ...defineReaction({ objectTypes: [], events: ["created"] }),
  ...overrides
})

describe("a debounced event", () => {
  it("S001-F01 is due when its object has been quiet, and at the latest maxWaitMs after the first", () => {
    const debounced = rule({ debounceMs: 100, maxWaitMs: 250 })
    expect(dueMs(debounced, 1_000, 1_000)).toBe(1_100)
    expect(dueMs(debounced, 1_000, 1_120)).toBe(1_220)
    expect(dueMs(debounced, 1_000, 1_240)).toBe(1_250)
  })

  it("waits at most ten times the quiet time when the rule does not say", () => {
    expect(dueMs(rule({ debounceMs: 100 }), 0, 5_000)).toBe(1_000)
  })
})

describe("a batched event", () => {
  it("S001-F01 is due maxWaitMs after the first of its batch, or when the agent has been quiet", () => {
    expect(dueMs(rule({ batchSize: 10, maxWaitMs: 400 }), 1_000, 1_390)).toBe(1_400)
    expect(dueMs(rule({ batchSize: 10 }), 1_000, 1_390)).toBe(2_000)
    expect(dueMs(rule({ batchSize: 10, debounceMs: 50 }), 1_000, 1_390)).toBe(1_440)
  })

  it("brings the releaser back for the first of a batch; the others wait as long as they may", () => {
    const batched = rule({ batchSize: 10, debounceMs: 50, maxWaitMs: 400 })
    expect(firstDueMs(batched, 1_000, true)).toBe(1_050)
    expect(firstDueMs(batched, 1_000, false)).toBe(1_400)
    expect(firstDueMs(rule({ debounceMs: 50 }), 1_000, false)).toBe(1_050)
    expect(firstDueMs(rule(), 1_000, true)).toBeNull()
  })
})

describe("what waits and what goes together", () => {
  it("S001-R24 only skip drops what comes while a run is at work on its object, and never a deletion", () => {
    const dropped = (["skip", "parallel", "latest", "queue"] as const).flatMap((concurrencyStrategy) =>
      ["created", "updated", "deleted", "occurred"].flatMap((eventType) =>
        isDroppedAtWork(rule({ concurrencyStrategy }), eventType)
          ? [`${concurrencyStrategy} ${eventType}`]
          : []
      )
    )
    expect(dropped).toEqual(["skip created", "skip updated", "skip occurred"])
  })

  it("nothing waits of a rule that skips or works in parallel and has no other bound", () => {
    expect(isImmediate(rule())).toBe(true)
    expect(isImmediate(rule({ concurrencyStrategy: "parallel" }))).toBe(true)
    const waiting: ReadonlyArray<Partial<ReactionConfig>> = [
      { concurrencyStrategy: "latest" },
      { concurrencyStrategy: "queue" },
      { debounceMs: 1 },
      { batchSize: 2 },
      { rateLimit: { maxRuns: 1, perSeconds: 1 } },
      { maxConcurrency: 1 }
    ]
    for (const overrides of waiting)
      expect([overrides, isImmediate(rule(overrides))]).toEqual([overrides, false])
  })

  it("S001-F02 a queue is taken one by one, every other line whole", () => {
    expect(takesLine(rule({ concurrencyStrategy: "queue" }))).toBe(false)
    expect(takesLine(rule({ concurrencyStrategy: "queue", debounceMs: 10 }))).toBe(true)
    expect(takesLine(rule({ concurrencyStrategy: "latest" }))).toBe(true)
    expect(takesLine(rule({ concurrencyStrategy: "parallel", debounceMs: 10 }))).toBe(true)
    expect(standsInLine(rule({ concurrencyStrategy: "parallel" }))).toBe(false)
  })

  it("says why, for every kind of waiting", () => {
    for (const sentence of Object.values(waitSentences)) expect(sentence).toMatch(/^[A-Z].+\.$/)
    expect(firstWait(rule({ debounceMs: 1, batchSize: 2 }))).toBe("debounce")
    expect(firstWait(rule({ batchSize: 2 }))).toBe("batch")
    expect(firstWait(rule({ concurrencyStrategy: "queue" }))).toBe("object")
    expect(firstWait(rule({ maxConcurrency: 1 }))).toBe("turn")
  })
})

/**
 * Replays: whatever the engine writes is written again alike, and what it would not write is found.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { long } from "../testing/any-log.ts"
import { anyEngineLog, engineLog } from "../testing/engine.ts"
import { beginReplay, type KeptEvent, replay, replayOf } from "./replay.ts"

const replayed = (log: ReadonlyArray<KeptEvent>) => replayOf(replay(beginReplay, log))

/** Two turns, the first with two calls. */
const plain = engineLog([
  [9, 1, false],
  [9, 2, false],
  [9, 3, false],
  [9, 4, false],
  [9, 3, false],
  [9, 6, false],
  [9, 1, false],
  [9, 1, false]
])

/** The log with one event changed, and the number of that event. */
const changed = (type: string, change: Readonly<Record<string, unknown>>) => {
  const index = plain.findIndex((event) => event.type === type)
  const log = plain.map((event, at): KeptEvent => (at === index ? { ...event, ...change } : event))
  return { eventId: log[index]?.id, log }
}

describe("replay", () => {
  it.prop(
    "S004-F19 any log that the engine wrote is written again alike",
    [anyEngineLog],
    ([log]) => {
      const { events, firstDifference } = replayed(log)
      expect(firstDifference).toBeUndefined()
      expect(events).toBe(log.length)
    },
    { arbitrary: long }
  )

  it.prop(
    "S004-F19 a log gives the same in parts of any size",
    [anyEngineLog, Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 })))],
    ([log, size]) => {
      let replaying = beginReplay
      for (let at = 0; at < log.length; at += size) replaying = replay(replaying, log.slice(at, at + size))
      expect(replayOf(replaying)).toEqual(replayed(log))
    }
  )
})

describe("S004-F19 a log that was changed", () => {
  it.each<readonly [string, Readonly<Record<string, unknown>>, string]>([
    ["AgentTurnStartedEvent", { turnNumber: 2 }, "turnNumber"],
    ["AgentTurnCompletedEvent", { turnNumber: 7 }, "turnNumber"],
    ["AgentTurnCompletedEvent", { parentEventId: "tester:9" }, "parentEventId"],
    ["ToolCallStartedEvent", { callId: "c4-9" }, "callId"],
    ["ToolCallStartedEvent", { tool: "delete_object" }, "tool"],
    ["ToolCallStartedEvent", { arguments: { id: "another" } }, "arguments"],
    ["ToolCallCompletedEvent", { tool: "delete_object" }, "tool"],
    ["AssistantMessageEvent", { triggersAgentTurn: true }, "triggersAgentTurn"],
    ["UserMessageEvent", { agentName: "other" }, "agentName"],
    ["UserMessageEvent", { note: "more than there is" }, "note"]
  ])("says which %s has what of %j", (type, change, field) => {
    const { eventId, log } = changed(type, change)
    const { firstDifference, isEqual } = replayed(log)
    expect(isEqual).toBe(false)
    expect(firstDifference).toMatchObject({
      eventId,
      detail: expect.stringMatching(new RegExp(`\\b${field}$`)),
      found: change
    })
  })

  it.each([
    ["AgentTurnStartedEvent", "requestModel"],
    ["AssistantMessageEvent", "callTool"],
    ["ToolCallCompletedEvent", "callTool"],
    ["AgentTurnCompletedEvent", "finish"]
  ])("says where a second %s could not follow", (type, next) => {
    const index = plain.findIndex((event) => event.type === type)
    const twice = plain.toSpliced(index + 1, 0, ...plain.slice(index, index + 1))
    const { firstDifference } = replayed(twice)
    expect(firstDifference).toMatchObject({
      eventId: plain[index]?.id,
      detail: expect.stringMatching(new RegExp(`${type}.*\\b${next}$`)),
      expected: null
    })
  })

  it("says where an event is missing, whichever it is", () => {
    const found = plain.slice(0, -1).map((_, index) => replayed(plain.toSpliced(index, 1)).firstDifference)
    expect(found.map((difference) => difference?.eventId)).toEqual(plain.slice(1).map(({ id }) => id))
  })

  it("takes what came from outside as it is", () => {
    const others = [
      changed("UserMessageEvent", { content: "other words" }),
      changed("AssistantMessageEvent", { content: "another answer", model: "another:model" }),
      changed("ToolCallCompletedEvent", { result: [1, 2] }),
      changed("AgentTurnCompletedEvent", { durationMs: 77, timestamp: "2027-01-01T00:00:00.000Z" })
    ]
    expect(others.map(({ log }) => replayed(log).isEqual)).toEqual([true, true, true, true])
  })

  it("keeps to itself what a newer version wrote, and finds what none can read", () => {
    const [first] = plain
    const unknown = { ...first, type: "HumanSignedEvent" } as KeptEvent
    expect(replayed([unknown]).isEqual).toBe(true)
    const { firstDifference } = replayed(changed("AgentTurnStartedEvent", { turnNumber: "one" }).log)
    expect(firstDifference).toEqual({
      eventId: plain.find(({ type }) => type === "AgentTurnStartedEvent")?.id,
      detail: expect.stringContaining("AgentTurnStartedEvent"),
      expected: null,
      found: expect.objectContaining({ turnNumber: "one" })
    })
  })
})

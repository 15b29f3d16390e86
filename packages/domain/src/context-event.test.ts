/**
 * What every event of a context carries, and what becomes of a foreign one.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import {
  ContextEvent,
  ContextEventId,
  ContextName,
  contextEventId,
  decodeEvent,
  eventNumber,
  TextDeltaEvent,
  UnknownEvent
} from "./context-event.ts"
import { answers, asks, contextName, logOf, turnCompletes, turnStarts } from "../testing/log.ts"

const message = {
  type: "UserMessageEvent",
  id: "tester:1",
  timestamp: "2026-11-20T12:00:00.000Z",
  agentName: "tester",
  parentEventId: null,
  triggersAgentTurn: true,
  content: "hello"
}

describe("event ids", () => {
  it("S004-R14 an id is {agentName}:{counter}", () => {
    expect(contextEventId("tester", 12)).toBe("tester:12")
    expect(eventNumber(contextEventId("a.b-c_d", 4_000_000_000))).toBe(4_000_000_000)
  })

  it.each([
    "tester",
    "tester:",
    "tester:0",
    "tester:01",
    "tester:-1",
    "tester:1.d2",
    ":1",
    "a:b:1",
    "tester:1e3",
    " tester:1"
  ])("S004-R14 %j is no id", (id) => {
    expect(Schema.is(ContextEventId)(id)).toBe(false)
  })

  it("S004-R14 a name that holds the separator is refused, so an id is read in one way only", () => {
    expect(Schema.is(ContextName)("a:b")).toBe(false)
    expect(Schema.is(ContextName)("a.b")).toBe(true)
  })

  it.prop(
    "S004-R14 the counter is read back from the id",
    [
      Arbitrary.schema(ContextName),
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9_999_999_999 })))
    ],
    ([name, number]) => {
      expect(eventNumber(contextEventId(name, number))).toBe(number)
    }
  )
})

describe("decodeEvent", () => {
  it("S004-R15 S004-R16 an event has a timestamp and the name of its context", () => {
    const event = decodeEvent(message)
    expect(event.timestamp).toBe("2026-11-20T12:00:00.000Z")
    expect(event.agentName).toBe(contextName)
  })

  it("S004-R17 S004-R20 parentEventId is a required field and an Option, none for the first event", () => {
    expect(decodeEvent(message).parentEventId).toStrictEqual(Option.none())
    expect(
      decodeEvent({ ...message, id: "tester:2", parentEventId: "tester:1" }).parentEventId
    ).toStrictEqual(Option.some("tester:1"))
    const { parentEventId: _, ...withoutParent } = message
    expect(() => decodeEvent(withoutParent)).toThrow("parentEventId")
  })

  it("S004-R21 triggersAgentTurn belongs to the event and not to its type", () => {
    expect(decodeEvent({ ...message, triggersAgentTurn: false }).triggersAgentTurn).toBe(false)
    expect(
      decodeEvent({ ...message, type: "SystemPromptEvent", triggersAgentTurn: true }).triggersAgentTurn
    ).toBe(true)
  })

  it("an event of an unknown type is kept as one", () => {
    const event = decodeEvent({ ...message, type: "DefineToolEvent", tool: {} })
    expect(event).toBeInstanceOf(UnknownEvent)
    expect(event.type).toBe("DefineToolEvent")
    expect(event.id).toBe("tester:1")
  })

  it("an event of a known type whose content a later version changed is kept as unknown", () => {
    expect(decodeEvent({ ...message, content: { parts: [] } })).toBeInstanceOf(UnknownEvent)
  })

  it("a known event keeps its class, also with a field more than this version knows", () => {
    const event = decodeEvent({ ...message, locale: "en" })
    expect(event).not.toBeInstanceOf(UnknownEvent)
    expect(event).toMatchObject({ type: "UserMessageEvent", content: "hello" })
  })

  it("what is written reads back as the same event", () => {
    const encode = Schema.encodeUnknownSync(ContextEvent)
    for (const event of logOf(asks("one"), turnStarts(1), answers("", ["c1"]), turnCompletes(1))) {
      expect(decodeEvent(JSON.parse(JSON.stringify(encode(event))))).toStrictEqual(event)
    }
  })
})

describe("TextDeltaEvent", () => {
  const delta = {
    ...message,
    type: "TextDeltaEvent",
    id: "tester:4.d2",
    delta: "hel",
    triggersAgentTurn: false
  }

  it("S004-R26 a delta is no event of the log", () => {
    expect(Schema.is(TextDeltaEvent)(delta)).toBe(true)
    expect(Schema.is(ContextEventId)(delta.id)).toBe(false)
    expect(() => decodeEvent(delta)).toThrow("{agentName}:{counter}")
  })

  it("S004-R26 a delta never triggers a turn", () => {
    expect(Schema.is(TextDeltaEvent)({ ...delta, triggersAgentTurn: true })).toBe(false)
  })
})

/**
 * What a log says is read as what comes from elsewhere is, though its own part is not judged again.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { ContextEvent, decodeEvent, UnknownEvent } from "./context-event.ts"
import { type LoggedJson, readLogged } from "./logged-event.ts"

/** As PostgreSQL gives it back: JSON, whatever was put in. */
const keptOf = (event: ContextEvent): LoggedJson =>
  JSON.parse(JSON.stringify(Schema.encodeUnknownSync(ContextEvent)(event)))

const anyName = Schema.Literals(["content", "result", "toolCalls", "usage", "turnNumber", "role", "reason"])
const anyValue = Schema.NullOr(Schema.Literals([7, "text", false]))

describe("readLogged", () => {
  const members: ReadonlyArray<Schema.Schema<ContextEvent> & { readonly identifier: string }> =
    ContextEvent.members
  for (const member of members)
    it.prop(`reads ${member.identifier} as decodeEvent does`, [Arbitrary.schema(member)], ([event]) => {
      const read = readLogged(keptOf(event))
      expect(read).toStrictEqual(decodeEvent(keptOf(event)))
      expect(read).not.toBeInstanceOf(UnknownEvent)
    })

  it.prop(
    "takes an event whose content is another than its type says as one that it does not know, as decodeEvent does",
    [Arbitrary.schema(ContextEvent), Arbitrary.schema(anyName), Arbitrary.schema(anyValue)],
    ([event, name, value]) => {
      const changed = { ...keptOf(event), [name]: value }
      expect(readLogged(changed)).toStrictEqual(decodeEvent(changed))
    }
  )

  it("keeps an event of a type that this version does not know", () => {
    const read = readLogged({
      ...keptOf(decodeEvent(first) as ContextEvent),
      type: "SomethingNewEvent"
    })
    expect([read instanceof UnknownEvent, read.type]).toEqual([true, "SomethingNewEvent"])
  })
})

const first = {
  type: "UserMessageEvent",
  id: "tester:1",
  timestamp: "2026-11-20T12:00:00.000Z",
  agentName: "tester",
  parentEventId: null,
  triggersAgentTurn: true,
  content: "hello"
}

/**
 * What a foreign server's answer may be, and what of it counts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { sourceLimits, readTelling } from "./events.ts"

const question = { name: "order.placed", arguments: {}, cursor: "1" }
const event = { eventId: "a", name: "order.placed", timestamp: "2026-11-22T10:00:00Z", data: { size: 1 } }
const answer = { events: [event], cursor: "2" }

const faultOf = (value: unknown) => Effect.flip(readTelling(value, question))

describe("The answer of a foreign server to events/poll", () => {
  it.effect("is what happened, the next cursor, and what the server says of the rest", () =>
    Effect.gen(function* () {
      expect(yield* readTelling(answer, question)).toEqual({
        events: [
          {
            eventId: "a",
            happenedAt: "2026-11-22T10:00:00.000Z",
            payload: { size: 1 },
            payloadOmitted: false
          }
        ],
        cursor: "2",
        hasMore: false,
        truncated: false,
        nextPollMs: null
      })
      const more = { ...answer, hasMore: true, truncated: true, nextPollMs: 7 }
      expect(yield* readTelling(more, question)).toMatchObject({
        hasMore: true,
        truncated: true,
        nextPollMs: 7
      })
    })
  )

  it.effect("tells nothing of before to whoever begins now", () =>
    Effect.gen(function* () {
      const telling = yield* readTelling(answer, { ...question, cursor: null })
      expect([telling.events, telling.cursor]).toEqual([[], "2"])
    })
  )

  it.effect("leaves out a payload that is too large or cannot be kept, and nothing else", () =>
    Effect.gen(function* () {
      const payloads = [
        { text: "x".repeat(sourceLimits.payloadMaxChars) },
        { text: "a\0b" },
        undefined,
        "\ud800"
      ]
      const events = payloads.map((data, index) => ({ ...event, eventId: String(index), data }))
      const telling = yield* readTelling({ ...answer, events }, question)
      expect(telling.events.map(({ payload, payloadOmitted }) => [payload, payloadOmitted])).toEqual([
        [null, true],
        [null, true],
        [null, false],
        [null, true]
      ])
    })
  )

  it.effect("leaves out a key that no object may have, wherever it is, and says so", () =>
    Effect.gen(function* () {
      const data = JSON.parse(
        '{"title":"a","constructor":"Ford","in":[{"__proto__":{"x":1},"y":2},{"prototype":null}],"price":3}'
      )
      const telling = yield* readTelling({ ...answer, events: [{ ...event, data }] }, question)
      expect(telling.events[0]).toMatchObject({ payloadOmitted: true })
      expect(JSON.stringify(telling.events[0]?.payload)).toBe('{"title":"a","in":[{"y":2},{}],"price":3}')
    })
  )

  for (const [why, wrong] of Object.entries({
    "has no cursor": { events: [] },
    "has an endless cursor": { events: [], cursor: "x".repeat(sourceLimits.cursorMaxChars + 1) },
    "has a cursor that cannot be kept": { events: [], cursor: "a\0" },
    "has no events": { events: "none", cursor: "2" },
    "has more events than can be taken": {
      ...answer,
      events: Array.from({ length: sourceLimits.answerMaxEvents + 1 }, () => event)
    },
    "is about another event": { ...answer, events: [{ ...event, name: "order.paid" }] },
    "has an event without an id": { ...answer, events: [{ ...event, eventId: "" }] },
    "has an event whose id cannot be kept": { ...answer, events: [{ ...event, eventId: "a\0" }] },
    "has an event of no time": { ...answer, events: [{ ...event, timestamp: "soon" }] },
    "has an event of a year that is none": {
      ...answer,
      events: [{ ...event, timestamp: "+012026-01-01T00:00:00Z" }]
    },
    "is nothing": null
  }))
    it.effect(`that ${why} is none, and nothing of it counts`, () =>
      Effect.map(faultOf(wrong), ({ outcome }) => expect(outcome).toBe("answered"))
    )
})

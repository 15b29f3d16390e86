/**
 * What clients ask of the Events extension: read, or refused by its own number with what is wrong.
 */
import { describe, expect, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Arbitrary, Effect, Exit, Schema } from "effect"
import {
  cursorAt,
  eventLimits,
  PollParams,
  pollSize,
  readBeginning,
  readListening,
  SubscribeParams,
  UnsubscribeParams
} from "./events.ts"
import { readParams } from "./server.ts"

const here = ProjectId.make("018f0000-0000-7000-8000-000000000001")
const there = ProjectId.make("018f0000-0000-7000-8000-000000000002")
const delivery = { url: "https://example.com/", secret: "whsec_x" }

describe("What a client sends to the Events extension", () => {
  it.effect.each([
    ["a poll of all", PollParams, { name: "object.created" }],
    ["nulls", PollParams, { name: "x", arguments: null, cursor: null, maxAgeMs: null, maxEvents: null }],
    ["bounds", PollParams, { name: "x", maxAgeMs: 0, maxEvents: 1 }],
    ["a subscription", SubscribeParams, { name: "x", delivery }],
    ["one without an end", SubscribeParams, { name: "x", ttlMs: null, delivery }],
    ["an end of it", UnsubscribeParams, { name: "x", delivery: { url: "https://example.com/" } }]
  ] as const)("is read: %s", ([, schema, params]) =>
    Effect.gen(function* () {
      expect(yield* readParams<unknown>(schema, params)).toMatchObject({ name: params.name })
    })
  )

  it.effect.each([
    ["no name", PollParams, {}, "/name"],
    ["a number as name", PollParams, { name: 7 }, "/name"],
    ["arguments as a list", PollParams, { name: "x", arguments: [] }, "/arguments"],
    ["no event at most", PollParams, { name: "x", maxEvents: 0 }, "/maxEvents"],
    ["half an event", PollParams, { name: "x", maxEvents: 1.5 }, "/maxEvents"],
    ["an age below none", PollParams, { name: "x", maxAgeMs: -1 }, "/maxAgeMs"],
    ["a number as cursor", PollParams, { name: "x", cursor: 1 }, "/cursor"],
    ["a life of nothing", SubscribeParams, { name: "x", ttlMs: 0, delivery }, "/ttlMs"],
    ["no address", SubscribeParams, { name: "x", delivery: { secret: "whsec_x" } }, "/delivery/url"],
    ["no secret", SubscribeParams, { name: "x", delivery: { url: "https://x.y/" } }, "/delivery/secret"],
    ["no delivery", UnsubscribeParams, { name: "x" }, "/delivery"]
  ] as const)("is refused at its place: %s", ([, schema, params, place]) =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(readParams<unknown>(schema, params))
      expect([fault.code, fault.message]).toEqual([-32_602, expect.stringContaining(place)])
    })
  )

  it.effect("names an event that there is, with arguments that its kind has", () =>
    Effect.gen(function* () {
      const { filter, type } = yield* readListening({ name: "object.created", arguments: { type: "Box" } })
      expect([type.name, filter]).toEqual(["object.created", { type: "Box" }])
      expect((yield* readListening({ name: "object.deleted", arguments: null })).filter).toEqual({})
      const unknown = yield* Effect.flip(readListening({ name: "object.moved" }))
      expect([unknown.code, unknown.data]).toEqual([-32_011, { kind: "event" }])
      expect(unknown.message).toContain("relationship.deleted")
      for (const [name, args] of [
        ["object.created", { fromId: here }],
        ["object.created", { changedProperties: ["size"] }],
        ["object.updated", { changedProperties: [] }],
        ["relationship.created", { objectId: here }],
        ["object.created", { where: [{ property: "size", op: "near", value: 1 }] }]
      ] as const) {
        const fault = yield* Effect.flip(readListening({ name, arguments: args }))
        expect([name, args, fault.code]).toEqual([name, args, -32_602])
      }
    })
  )

  it.effect("begins now, or behind a cursor of this project with an age", () =>
    Effect.gen(function* () {
      const now = { after: null, maxAgeMs: null }
      expect(yield* readBeginning(here, {})).toEqual(now)
      // Without a cursor there is nothing that could be too old.
      expect(yield* readBeginning(here, { cursor: null, maxAgeMs: 5 })).toEqual(now)
      const cursor = cursorAt(here, 7)
      expect(yield* readBeginning(here, { cursor })).toEqual({ after: 7, maxAgeMs: null })
      expect(yield* readBeginning(here, { cursor, maxAgeMs: 5 })).toEqual({ after: 7, maxAgeMs: 5 })
      for (const text of ["", "7", cursorAt(there, 7)])
        expect(Exit.isFailure(yield* Effect.exit(readBeginning(here, { cursor: text })))).toBe(true)
    })
  )

  it.prop(
    "is answered with no more events than may be",
    [Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })))],
    ([wanted]) => {
      expect(pollSize(wanted)).toBe(Math.min(wanted, eventLimits.pollMaxEvents))
    }
  )

  it("is answered with as many as is usual where nothing is said", () => {
    expect([pollSize(null), pollSize(undefined)]).toEqual([eventLimits.pollEvents, eventLimits.pollEvents])
  })
})

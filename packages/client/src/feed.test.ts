/**
 * A feed across good, cut, silent and refusing connections, by a scripted HTTP client and a test clock.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted, Schema, Stream } from "effect"
import {
  cannotBeReached,
  fallsSilentAfter,
  says,
  server,
  whileTimePasses
} from "../testing/scripted-server.ts"
import { FeedLost, FeedRefused, FeedUnreadable, followEvents, type FollowingOptions } from "./feed.ts"
import { pauseMs } from "./feed-reading.ts"
import { limits } from "./limits.ts"

const connection = { url: "http://tropism.test", token: Redacted.make("secret") }

const follow = (options?: FollowingOptions) =>
  followEvents(connection, "/feed", Schema.Struct({ n: Schema.Int }), options)

const numbers = (scripted: ReturnType<typeof server>, options?: FollowingOptions) =>
  follow(options).pipe(
    Stream.map((event) => event.data.n),
    Stream.runCollect,
    Effect.provide(scripted.layer)
  )

describe("followEvents", () => {
  it.effect("asks for a stream with the token and the place to go on from", () =>
    Effect.gen(function* () {
      const scripted = server(says('id: 8\ndata: {"n":8}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted, { lastEventId: "7" }))).toEqual([8])
      expect(scripted.requests[0]?.headers).toMatchObject({
        accept: "text/event-stream",
        authorization: "Bearer secret",
        "last-event-id": "7"
      })
    })
  )

  it.effect("asks for a place by the address, and goes on behind what it has heard", () =>
    Effect.gen(function* () {
      const scripted = server(cannotBeReached, says('id: 8\ndata: {"n":8}\n\n'), says(""))
      expect(yield* whileTimePasses(numbers(scripted, { after: 7 }))).toEqual([8])
      expect(
        scripted.requests
          .slice(0, 3)
          .map(({ headers, urlParams }) => [headers["last-event-id"], ...urlParams.params])
      ).toEqual([
        [undefined, ["after", "7"]],
        [undefined, ["after", "7"]],
        ["8", ["after", "7"]]
      ])
    })
  )

  it.effect("goes on after a cut where it was, in the middle of an event", () =>
    Effect.gen(function* () {
      const scripted = server(
        says('id: 1\ndata: {"n":1}\n\nid: 2\ndata: {"n":2}\n\nid: 3\ndata: {"n"'),
        says('id: 3\ndata: {"n":3}\n\n')
      )
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([1, 2, 3])
      expect(scripted.requests.map((request) => request.headers["last-event-id"])).toEqual([
        undefined,
        "2",
        "3"
      ])
    })
  )

  it.effect("goes on where a connection began that was cut before its first event", () =>
    Effect.gen(function* () {
      const begins = says("id: 5\nretry: 700\n\n")
      const scripted = server(begins, says(""), says('id: 5\nretry: 700\n\nid: 6\ndata: {"n":6}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([6])
      expect(scripted.requests.map(({ headers }) => headers["last-event-id"])).toEqual([
        undefined,
        "5",
        "5",
        "6"
      ])
    })
  )

  it.effect("does not take a retry line or a heartbeat for the end", () =>
    Effect.gen(function* () {
      const scripted = server(says('retry: 700\n\n: beat\n\nid: 1\ndata: {"n":1}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([1])
      expect(scripted.requests).toHaveLength(2)
    })
  )

  it.effect("leaves a connection that has fallen silent", () =>
    Effect.gen(function* () {
      const scripted = server(fallsSilentAfter('id: 1\ndata: {"n":1}\n\n'), says('id: 2\ndata: {"n":2}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([1, 2])
    })
  )

  it.effect("asks a busy or absent server again", () =>
    Effect.gen(function* () {
      const atWork = says("", { status: 409, headers: { "retry-after": "2" } })
      const busy = says("", { status: 503 })
      const scripted = server(cannotBeReached, busy, atWork, says('id: 1\ndata: {"n":1}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([1])
    })
  )

  it.effect("tells what a busy server said last where it stays busy", () =>
    Effect.gen(function* () {
      const scripted = server(...Array.from({ length: 200 }, () => says("Busy", { status: 503 })))
      const failure = yield* whileTimePasses(Effect.flip(numbers(scripted)))
      expect(failure).toEqual(new FeedRefused({ status: 503, answer: "Busy" }))
      expect(scripted.requests).toHaveLength(limits.reconnectsInARow + 1)
    })
  )

  it.effect(
    "takes what a server breaks off with for a cut, so often and no more, whatever came between",
    () =>
      Effect.gen(function* () {
        const failed = says('id: 1\ndata: {"n":1}\n\nevent: error\ndata: {"n":0}\n\n')
        const scripted = server(...Array.from({ length: 200 }, () => failed))
        const breaksOff: FollowingOptions["breaksOff"] = ({ name }) => name === "error"
        const told = follow({ breaksOff }).pipe(
          Stream.map((event) => event.data.n),
          Stream.takeUntil((n) => n === 0),
          Stream.runCollect,
          Effect.provide(scripted.layer)
        )
        expect((yield* whileTimePasses(told)).filter((n) => n === 0)).toEqual([0])
        expect(scripted.requests).toHaveLength(limits.reconnectsInARow + 1)
      })
  )

  it.effect("ends at once when the server refuses", () =>
    Effect.gen(function* () {
      const scripted = server(says('{"title":"Not found"}', { status: 404 }))
      const failure = yield* Effect.flip(numbers(scripted))
      expect(failure).toEqual(new FeedRefused({ status: 404, answer: '{"title":"Not found"}' }))
      expect(scripted.requests).toHaveLength(1)
    })
  )

  it.effect("ends at once when an event is not what the contract says", () =>
    Effect.gen(function* () {
      const scripted = server(says('id: 1\ndata: {"n":"one"}\n\n'))
      expect(yield* Effect.flip(numbers(scripted))).toBeInstanceOf(FeedUnreadable)
    })
  )

  it.effect("gives up after so many failures in a row", () =>
    Effect.gen(function* () {
      const scripted = server(...Array.from({ length: 200 }, () => cannotBeReached))
      const failure = yield* whileTimePasses(Effect.flip(numbers(scripted)))
      expect(failure).toEqual(
        new FeedLost({ failures: limits.reconnectsInARow + 1, url: "http://tropism.test/feed" })
      )
      expect(scripted.requests).toHaveLength(limits.reconnectsInARow + 1)
    })
  )

  it.effect(
    "ends with a log that is over, and not with a server that stops: who asks is told which it was",
    () =>
      Effect.gen(function* () {
        const closed = says("retry: 1000\n\n")
        const scripted = server(
          says('id: 1\ndata: {"n":1}\n\n'),
          closed,
          says('id: 2\ndata: {"n":2}\n\n'),
          closed,
          says('id: 3\ndata: {"n":3}\n\n')
        )
        const answers = [false, true]
        const isOver = Effect.sync(() => answers.shift() ?? true)
        expect(yield* whileTimePasses(numbers(scripted, { isOver }))).toEqual([1, 2])
        expect(scripted.requests).toHaveLength(4)
      })
  )

  it.effect("counts failures in a row only: a quiet feed that is cut for ever is followed for ever", () =>
    Effect.gen(function* () {
      const quiet = Array.from({ length: 100 }, () => says(": nothing new\n\n"))
      const scripted = server(...quiet, says('id: 1\ndata: {"n":1}\n\n'))
      expect(yield* whileTimePasses(numbers(scripted))).toEqual([1])
    })
  )
})

describe("pauseMs", () => {
  it("doubles up to its bound and honours the server's wish", () => {
    expect([0, 1, 2, 20].map((failures) => pauseMs({ failures, reconnectMs: undefined }))).toEqual([
      250,
      500,
      1000,
      limits.reconnectLongestMs
    ])
    expect(pauseMs({ failures: 0, reconnectMs: 3_000 })).toBe(3_000)
  })
})

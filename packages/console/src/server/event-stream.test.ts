/**
 * Lines become events only when they are whole, and wake-ups read again what may be old, nothing else.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { until } from "../../../cli/testing/invoke.ts"
import { eventReader, followStream } from "./event-stream.ts"
import { withHead } from "./paged.ts"
import { isTouched } from "./touched.ts"

const readAll = (lines: ReadonlyArray<string>) => {
  const read = eventReader()
  return lines.flatMap((line) => read(line) ?? [])
}

describe("a stream", () => {
  it("tells an event when its empty line came, all its data together", () => {
    expect(
      readAll([": heartbeat", "", "id: 7", "event: created", 'data: {"a":', "data:1}", "", "data: x", ""])
    ).toEqual([
      { id: "7", name: "created", text: '{"a":\n1}' },
      { id: "", name: "message", text: "x" }
    ])
  })

  it("never tells what a cut left half", () => {
    expect(readAll(["id: 8", "data: half"])).toEqual([])
  })
})

describe("a wake-up", () => {
  const events = [{ entityType: "graphObject" as const, entityId: "o1" }]

  it.each([
    [["p", "objects", "search", {}], events, true],
    [["p", "object", "o1"], events, true],
    [["p", "object", "o2"], events, false],
    [["p", "object", "o2"], [], true],
    [["p", "history", "o1", 3], events, false],
    [["p", "members", {}], [], false],
    [["p"], events, false]
  ])("%j after %j reads again: %s", (key, events, isOld) => {
    expect(isTouched(key, events)).toBe(isOld)
  })
})

describe("the head of a long list", () => {
  const rows = (...ids: ReadonlyArray<string>) => ids.map((id) => ({ id }))
  const ids = (list: ReadonlyArray<{ readonly id: string }>) => list.map(({ id }) => id).join("")

  it.each([
    ["replaces what it reaches", rows("e", "d", "b"), "more", rows("d", "c", "b", "a"), "edba", false],
    ["is all there is without a next page", rows("b"), null, rows("b", "a"), "b", false],
    ["tells a gap", rows("f", "e"), "more", rows("b", "a"), "feba", true],
    ["stands alone before older rows are read", rows("b"), "more", [], "b", false]
  ])("%s", (_, items, nextCursor, older, shown, hasGap) => {
    const laid = withHead({ items, nextCursor }, older)
    expect([ids(laid.rows), laid.hasGap]).toEqual([shown, hasGap])
  })
})

describe("a followed stream", () => {
  it.live("says that it was cut also where it had brought nothing yet", () =>
    Effect.gen(function* () {
      const asked: Array<string | null> = []
      const server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        // The first connection ends without an event.
        fetch: (request) => {
          asked.push(request.headers.get("last-event-id"))
          const text = asked.length === 1 ? ": hello\n" : "id: 7\ndata: one\n\n"
          return new Response(text, { headers: { "content-type": "text/event-stream" } })
        }
      })
      yield* Effect.addFinalizer(() => Effect.promise(() => server.stop(true)))
      const told: Array<string> = []
      const following = yield* Effect.forkChild(
        followStream(
          `http://127.0.0.1:${server.port}/events`,
          { lastEventId: undefined },
          {
            onState: (state) => void told.push(state),
            onResumed: () => void told.push("resumed"),
            onEvent: ({ text }) => void told.push(text)
          }
        )
      )
      yield* until(() => asked.length === 3)
      yield* Fiber.interrupt(following)
      expect(told.slice(0, 8)).toEqual([
        "connecting",
        "live",
        "lost",
        "connecting",
        "live",
        "resumed",
        "one",
        "lost"
      ])
      expect(asked).toEqual([null, null, "7"])
    })
  )
})

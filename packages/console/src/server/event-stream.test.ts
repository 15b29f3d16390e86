/**
 * Lines become events only when they are whole, and wake-ups read again what may be old, nothing else.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { until } from "../../../cli/testing/invoke.ts"
import { eventReader, followStream, type Place } from "./event-stream.ts"
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

  it("keeps the place that comes without an event, once its empty line came", () => {
    const place: Place = { lastEventId: undefined }
    const read = eventReader(place)
    const places = ["id: 7", "retry: 1000", "", "id: 8", "data: half"].map((line) => [
      read(line),
      place.lastEventId
    ])
    expect(places).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      [undefined, "7"],
      [undefined, "7"],
      [undefined, "7"]
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
    [
      "takes up from below what has changed",
      rows("a", "e"),
      "more",
      rows("e", "d", "c", "b", "a"),
      "aedcb",
      false
    ],
    [
      "shows once what moved between two readings",
      rows("e"),
      "more",
      rows("e", "d", "c", "b", "d"),
      "ecbd",
      false
    ],
    ["tells a gap and shows all once", rows("f", "b"), "more", rows("d", "c", "d", "f"), "fbcd", true],
    ["stands alone before older rows are read", rows("b"), "more", [], "b", false]
  ])("%s", (_, items, nextCursor, older, shown, hasGap) => {
    const laid = withHead({ items, nextCursor }, older)
    expect([ids(laid.rows), laid.hasGap]).toEqual([shown, hasGap])
  })

  it.each([
    ["c", "cdba", true, "a last row that came up from below a row that the head lacks is no seam"],
    ["d", "cdba", false, "a last row that changed where it was is one"]
  ])("%s", (last, shown, hasGap) => {
    const older = ["d", "c", "b", "a"].map((id) => ({ id, version: 1 }))
    const items = [...(last === "d" ? ["c"] : []), last].map((id) => ({ id, version: 2 }))
    const laid = withHead({ items, nextCursor: "more" }, older)
    expect([ids(laid.rows), laid.hasGap]).toEqual([shown, hasGap])
  })
})

describe("a followed stream", () => {
  it.live("says that it was cut also where it had brought nothing yet, and goes on where it began", () =>
    Effect.gen(function* () {
      const asked: Array<string | null> = []
      const server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        // Two connections end without an event, the first before the server says where it begins.
        fetch: (request) => {
          asked.push(request.headers.get("last-event-id"))
          const text = [": hello\n", "id: 6\nretry: 1000\n\n"][asked.length - 1]
          return new Response(text ?? "id: 7\ndata: one\n\n", {
            headers: { "content-type": "text/event-stream" }
          })
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
      yield* until(() => asked.length === 4)
      yield* Fiber.interrupt(following)
      expect(told.slice(0, 12)).toEqual([
        "connecting",
        "live",
        "lost",
        "connecting",
        "live",
        "resumed",
        "lost",
        "connecting",
        "live",
        "resumed",
        "one",
        "lost"
      ])
      expect(asked).toEqual([null, null, "6", "7"])
    })
  )
})

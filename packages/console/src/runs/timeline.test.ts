/**
 * A run as spans: what came when, what is still going on, and which tries failed.
 */
import { expect, it } from "vitest"
import { breaksOf, placeIn } from "./timeline-scale.ts"
import { spansOf, spanText, withGaps } from "./timeline.ts"

const at = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString()
const nowMs = Date.parse(at(5_000))

const run = {
  createdAt: at(0),
  startedAt: at(100),
  completedAt: at(2_000),
  status: "completed",
  pauseReason: null,
  attempt: 1
} as const

/** Only what a span is made of. */
const call = (number: number, fields: Record<string, unknown>) =>
  ({
    number,
    purpose: "step",
    step: 1,
    flowStep: null,
    try: 1,
    status: "answered",
    error: null,
    ...fields
  }) as never
const tool = (id: string, fields: Record<string, unknown>) =>
  ({ id, tool: "get_object", status: "completed", decision: null, ...fields }) as never

it("tells the wait, each try of a request and each tool call in the order in which they began", () => {
  const spans = spansOf(
    run,
    [
      call(1, { startedAt: at(100), durationMs: 300, status: "failed", error: "overloaded: try later" }),
      call(2, { startedAt: at(900), durationMs: 400, try: 2 })
    ],
    [tool("a", { createdAt: at(1_300), completedAt: at(1_400), decision: "suggest" })],
    nowMs
  )
  expect(
    spans.map(({ key, startMs, endMs, hasFailed, note }) => [key, startMs, endMs, hasFailed, note])
  ).toEqual([
    ["queue", 0, 100, false, ""],
    ["model 1", 100, 400, true, "overloaded: try later"],
    ["model 2", 900, 1_300, false, expect.stringContaining("2")],
    ["tool a", 1_300, 1_400, false, expect.stringMatching(/\S/)]
  ])
  const [queue, first, second, looked] = spans.map(({ label }) => label)
  expect([queue, first, second, looked]).toEqual([
    expect.any(String),
    expect.stringContaining("1"),
    first,
    "get_object"
  ])
})

it("what is not over goes on to the present", () => {
  const going = { ...run, status: "running", completedAt: null, attempt: 2 } as const
  const spans = spansOf(
    going,
    [],
    [tool("a", { createdAt: at(200), completedAt: null, status: "started" })],
    nowMs
  )
  expect(spans.map(spanText)).toEqual([
    expect.stringMatching(/\b0 ms\b.*\b100 ms\b.*\b2\b/),
    expect.stringMatching(/\b200 ms\b.*\b4\.8 s\b/)
  ])
  // What goes on is told apart from what took as long.
  const [, open] = spans
  if (open === undefined) throw new Error("there is no second span")
  expect(spanText(open)).not.toBe(spanText({ ...open, isOpen: false }))
  const asking = { ...run, status: "paused", pauseReason: "question", completedAt: null } as const
  const waiting = spansOf(asking, [], [], nowMs).at(-1)
  expect(waiting).toMatchObject({
    key: "pause",
    type: "wait",
    startMs: 100,
    endMs: 5_000,
    isOpen: true
  })
  const spent = spansOf({ ...asking, pauseReason: "budget" }, [], [], nowMs).at(-1)
  expect(spent).toEqual({ ...waiting, label: expect.any(String) })
  expect(spent?.label).not.toBe(waiting?.label)
  const queued = { ...run, status: "queued", startedAt: null, completedAt: null } as const
  expect(spansOf(queued, [], [], nowMs)).toMatchObject([{ isOpen: true, endMs: 5_000 }])
})

it("tells the request under way, the one broken off, and what lies between two spans", () => {
  const going = { ...run, status: "running", completedAt: null } as const
  const asked = call(1, { startedAt: at(100), durationMs: 300 })
  const looked = tool("a", { createdAt: at(400), completedAt: at(500) })
  expect(spansOf(going, [asked], [looked], nowMs, { step: 2, isUnderWay: true }).at(-1)).toMatchObject({
    key: "open",
    type: "model",
    label: expect.stringContaining("2"),
    startMs: 500,
    endMs: 5_000,
    isOpen: true,
    hasFailed: false
  })
  const ended = { ...run, status: "cancelled" } as const
  expect(spansOf(ended, [asked], [looked], nowMs, { step: 2, isUnderWay: false }).at(-1)).toMatchObject({
    key: "open",
    endMs: 2_000,
    isOpen: false,
    hasFailed: true
  })
  const later = call(2, { step: 2, startedAt: at(3_000), durationMs: 100 })
  expect(withGaps(spansOf(going, [asked, later], [looked], nowMs)).map(({ key }) => key)).toEqual([
    "queue",
    "model 1",
    "tool a",
    "gap model 2",
    "model 2"
  ])
})

const hourMs = 3_600_000

it("draws a long wait short, so that the work beside it can be seen", () => {
  const waited = { ...run, startedAt: at(3 * hourMs), completedAt: at(3 * hourMs + 9_000) }
  const calls = [
    call(1, { startedAt: at(3 * hourMs), durationMs: 4_000 }),
    call(2, { step: 2, startedAt: at(3 * hourMs + 5_000), durationMs: 4_000 })
  ]
  const spans = spansOf(waited, calls, [], nowMs)
  const wholeMs = 3 * hourMs + 9_000
  const breaks = breaksOf(spans, wholeMs)
  expect(breaks).toEqual([{ startMs: 0, endMs: 3 * hourMs }])
  expect(spans.map((span) => placeIn(span, wholeMs, breaks))).toEqual([
    { start: 0, width: expect.closeTo(0.1) },
    { start: expect.closeTo(0.1), width: expect.closeTo(0.4) },
    { start: expect.closeTo(0.6), width: expect.closeTo(0.4) }
  ])
})

it("draws the wait for a person short, also where a call is what waits", () => {
  const asked = tool("a", { tool: "ask_user", createdAt: at(500), completedAt: at(hourMs) })
  const calls = [
    call(1, { startedAt: at(100), durationMs: 400 }),
    call(2, { step: 2, startedAt: at(hourMs), durationMs: 600 })
  ]
  const spans = spansOf({ ...run, completedAt: at(hourMs + 600) }, calls, [asked], nowMs)
  expect(spans.map(({ label, type }) => [label, type])).toContainEqual(["ask_user", "wait"])
  expect(breaksOf(spans, hourMs + 600)).toEqual([{ startMs: 500, endMs: hourMs }])
})

it("draws all to one scale where no wait is long, or nothing but a wait is there", () => {
  const queued = { ...run, status: "queued", startedAt: null, completedAt: null } as const
  expect(breaksOf(spansOf(queued, [], [], Date.parse(at(hourMs))), hourMs)).toEqual([])
  const short = spansOf(run, [call(1, { startedAt: at(100), durationMs: 1_900 })], [], nowMs)
  expect(breaksOf(short, 2_000)).toEqual([])
})

it("places a span in the whole, and never beyond it", () => {
  expect(placeIn({ startMs: 500, endMs: 1_000 }, 2_000, [])).toEqual({ start: 0.25, width: 0.25 })
  expect(placeIn({ startMs: 1_900, endMs: 9_000 }, 2_000, [])).toEqual({
    start: 0.95,
    width: expect.closeTo(0.05)
  })
  expect(placeIn({ startMs: 0, endMs: 0 }, 0, [])).toEqual({ start: 0, width: 0 })
})

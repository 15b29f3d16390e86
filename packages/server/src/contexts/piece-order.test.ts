/**
 * Pieces of answers, as they come from several servers, and those that are told.
 */
import { describe, expect, it } from "@effect/vitest"
import { makeDeltaOrder } from "./text-deltas.ts"

const first = "2026-01-01T00:00:00.000Z"
const second = "2026-01-01T00:00:05.000Z"

/** An event of the log by its number and type, or a piece by its place and the time at which it was said. */
type Told = readonly [number, string] | readonly [piece: string, timestamp: string]

/** The places of the pieces that are told. */
const toldOf = (...line: ReadonlyArray<Told>): ReadonlyArray<string> => {
  const order = makeDeltaOrder()
  return line.flatMap(([what, said]) => {
    if (typeof what === "string") return order.take({ id: `talk:${what}`, timestamp: said }) ? [what] : []
    order.note([{ id: `talk:${what}`, type: said } as never])
    return []
  })
}

describe("Pieces of answers that pass by", () => {
  it.each([
    [
      "each once, also where a sending came twice",
      [
        ["3.d1", first],
        ["3.d2", first],
        ["3.d1", first],
        ["3.d2", first],
        ["3.d3", first]
      ],
      ["3.d1", "3.d2", "3.d3"]
    ],
    [
      "those behind one that is missing",
      [
        ["3.d1", first],
        ["3.d4", first]
      ],
      ["3.d1", "3.d4"]
    ],
    [
      "those from where somebody began to watch",
      [
        ["3.d7", first],
        ["3.d8", first]
      ],
      ["3.d7", "3.d8"]
    ],
    [
      "none of an attempt that is over, between the pieces of the next",
      [
        ["3.d1", first],
        ["7.d1", second],
        ["3.d2", second],
        ["7.d2", second]
      ],
      ["3.d1", "7.d1", "7.d2"]
    ],
    [
      "none of it before the next has said anything",
      [
        ["3.d1", first],
        [4, "AgentTurnInterruptedEvent"],
        ["3.d2", second],
        [7, "AgentTurnStartedEvent"],
        ["3.d3", second],
        ["7.d1", second]
      ],
      ["3.d1", "7.d1"]
    ],
    [
      "none of an answer that is kept",
      [
        ["3.d1", first],
        [4, "AssistantMessageEvent"],
        ["3.d2", first]
      ],
      ["3.d1"]
    ],
    [
      "those of an answer during which something else was kept",
      [
        ["3.d1", first],
        [4, "UserMessageEvent"],
        ["3.d2", first]
      ],
      ["3.d1", "3.d2"]
    ],
    [
      "those that begin anew behind the same event",
      [
        ["3.d1", first],
        ["3.d2", first],
        ["3.d1", second],
        ["3.d2", second]
      ],
      ["3.d1", "3.d2", "3.d1", "3.d2"]
    ]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<Told>, ReadonlyArray<string>]>)(
    "tell %s",
    (_, line, told) => expect(toldOf(...line)).toEqual(told)
  )
})

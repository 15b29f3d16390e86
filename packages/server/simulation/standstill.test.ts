/**
 * When something that is not final has stood still for too long.
 */
import { describe, expect, it } from "@effect/vitest"
import { lineMs, type OpenWork } from "./open-work.ts"
import { makeStandstill } from "./standstill.ts"

const running = (standing: string): OpenWork => ({ name: "run 1", standing, withinMs: 3_000 })
const waiting: OpenWork = { name: "entry 1", standing: "1", withinMs: null }

describe("What stands still", () => {
  it("is told when it stands as it did for longer than its bound, and not before", () => {
    const { look } = makeStandstill(0)
    expect(look([running("1")], 0)).toEqual([])
    expect(look([running("1")], 3_000)).toEqual([])
    expect(look([running("1")], 3_001)).toEqual([expect.stringContaining("run 1")])
  })

  it("has its whole time again when something became of it", () => {
    const { look } = makeStandstill(0)
    look([running("1")], 0)
    look([running("2")], 3_000)
    expect(look([running("2")], 6_000)).toEqual([])
    expect(look([running("2")], 6_001)).toHaveLength(1)
  })

  it("waits for others as long as one of them has a pace of its own", () => {
    const { look } = makeStandstill(0)
    for (let nowMs = 0; nowMs <= 10 * lineMs; nowMs += 1_000)
      expect(look([running(String(nowMs)), waiting], nowMs)).toEqual([])
  })

  it("is told when all wait for others and nothing moves", () => {
    const { look } = makeStandstill(0)
    look([running("1"), waiting], 1_000)
    expect(look([waiting], 2_000)).toEqual([])
    expect(look([waiting], 2_000 + lineMs)).toEqual([])
    expect(look([waiting], 2_001 + lineMs)).toEqual([expect.stringContaining("entry 1")])
  })

  it("waits on when another that waited has come to its end", () => {
    const { look } = makeStandstill(0)
    const other = { ...waiting, name: "entry 2" }
    look([waiting, other], 0)
    expect(look([waiting], lineMs)).toEqual([])
    expect(look([waiting], 2 * lineMs)).toEqual([])
    expect(look([waiting], 2 * lineMs + 1)).toHaveLength(1)
  })
})

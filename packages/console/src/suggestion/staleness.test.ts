/**
 * What a reviewer is told before the click about a graph that moved.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Change } from "@tropism/domain/change"
import { addObject, addSuggestion, agentIds, emptyWorld, read } from "../../testing/fixture-world.ts"
import { isDenied, isGone, isInConflict, isLikelyRefused, judgeEvidence } from "./staleness.ts"
import { placeName } from "../words/place-name.ts"

const states = [
  { licence: "MIT", note: "a", address: { city: "A", street: "B" } },
  { licence: "MIT", note: "b", address: { city: "A", street: "C" } },
  { licence: "ISC", note: "b", address: { city: "B", street: "C" } }
]

/** A suggestion made on version 1 of an object that then went through so many of the states. */
const suggestionAfter = (versions: number, isDeleted = false) => {
  const world = emptyWorld()
  const target = addObject(world, 1, "Package", "a", states.slice(0, versions))
  const change: Change = {
    type: "update",
    objectId: target.id,
    data: { licence: "BSD", address: { city: "C" } }
  }
  return addSuggestion(world, {
    agentId: agentIds.licence,
    title: "t",
    change,
    ...(isDeleted ? {} : { target }),
    baseVersion: 1,
    evidence: [read(target, 1)]
  })
}

describe("a suggestion", () => {
  it("is as good as new while its target did not move, and while other places did", () => {
    for (const task of [suggestionAfter(1), suggestionAfter(2)]) {
      expect([isGone(task), isLikelyRefused(task)]).toEqual([false, false])
      expect(isInConflict(task, ["licence"])).toBe(false)
    }
    expect(suggestionAfter(2).staleness).toMatchObject({
      state: "rebasable",
      moved: ["/note", "/address/street"]
    })
  })

  it("is likely refused when a place that it changes moved, and says which", () => {
    const task = suggestionAfter(3)
    expect(isLikelyRefused(task)).toBe(true)
    expect([["licence"], ["address"], ["address", "city"]].map((path) => isInConflict(task, path))).toEqual([
      true,
      true,
      true
    ])
    expect([["note"], ["address", "street"], ["hom"]].map((path) => isInConflict(task, path))).toEqual([
      false,
      false,
      false
    ])
  })

  it("is gone with its target", () => {
    const task = suggestionAfter(1, true)
    expect([isGone(task), isLikelyRefused(task)]).toEqual([true, true])
  })

  it("that its agent may not make any more is likely refused, and not gone", () => {
    const task = { ...suggestionAfter(1), denial: "The agent's capability canUpdateObjects is false" }
    expect([isGone(task), isDenied(task), isLikelyRefused(task)]).toEqual([false, true, true])
  })

  it("that is decided says nothing", () => {
    const task = { staleness: null, denial: null }
    expect([isGone(task), isLikelyRefused(task), isInConflict(task, ["licence"])]).toEqual([
      false,
      false,
      false
    ])
  })
})

describe("evidence", () => {
  const evidence = { objectId: "o", type: "Package", version: 2 }
  const marked = (currentVersion: number | null) => ({
    staleness: {
      state: "fresh" as const,
      currentVersion: null,
      moved: [],
      conflicts: [],
      added: [],
      takenBy: null,
      evidenceChanged: [{ ...evidence, currentVersion }]
    }
  })

  it("stands, moved, or is gone", () => {
    expect(judgeEvidence({ staleness: null }, evidence)).toEqual({ type: "same" })
    expect(judgeEvidence(marked(3), { ...evidence, objectId: "p" })).toEqual({ type: "same" })
    expect(judgeEvidence(marked(3), evidence)).toEqual({ type: "moved", currentVersion: 3 })
    expect(judgeEvidence(marked(null), evidence)).toEqual({ type: "gone" })
  })
})

describe("a place", () => {
  it("is named by the way to it", () => {
    expect(["/licence", "/address/city", "/a~1b/~0c"].map(placeName)).toEqual([
      "licence",
      "address › city",
      "a/b › ~c"
    ])
  })
})

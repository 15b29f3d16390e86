/**
 * What a reviewer is told before the click about a graph that moved.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Change } from "@tropism/domain/change"
import { addObject, addSuggestion, agentIds, emptyWorld } from "../../testing/fixture-world.ts"
import { isGone, isLikelyRefused, judgeEvidence, judgeStaleness } from "./staleness.ts"

const states = [
  { licence: "MIT", note: "a", size: 1 },
  { licence: "MIT", note: "b", size: 1 },
  { licence: "ISC", note: "b", size: 1 }
]

/** A suggestion made on version 1 of an object that then went through so many of the states. */
const suggestionAfter = (versions: number, change: "update" | "delete", baseVersion: number | null = 1) => {
  const world = emptyWorld()
  const target = addObject(world, 1, "Package", "a", states.slice(0, versions))
  const suggested: Change =
    change === "delete"
      ? { type: "delete", objectId: target.id }
      : { type: "update", objectId: target.id, data: { licence: "BSD", extra: true } }
  const task = addSuggestion(world, {
    agentId: agentIds.licence,
    title: "t",
    change: suggested,
    target,
    baseVersion
  })
  return { task, history: world.versions.get(target.id) }
}

describe("a suggestion", () => {
  it("is fresh while its target is at the version that the agent saw", () => {
    const { task, history } = suggestionAfter(1, "update")
    expect(judgeStaleness(task, history)).toEqual({ type: "fresh" })
  })

  it("is fresh when nobody knows which version the agent saw", () => {
    const { task, history } = suggestionAfter(3, "update", null)
    expect(judgeStaleness(task, history)).toEqual({ type: "fresh" })
  })

  it("is moved without a conflict when other properties moved", () => {
    const { task, history } = suggestionAfter(2, "update")
    const staleness = judgeStaleness(task, history)
    expect(staleness).toEqual({
      type: "moved",
      baseVersion: 1,
      currentVersion: 2,
      moved: ["note"],
      conflicts: [],
      isOutdated: false
    })
    expect(isLikelyRefused(staleness)).toBe(false)
  })

  it("is in conflict when a property that it changes moved", () => {
    const { task, history } = suggestionAfter(3, "update")
    const staleness = judgeStaleness(task, history)
    expect(staleness).toMatchObject({ moved: ["licence", "note"], conflicts: ["licence"] })
    expect(isLikelyRefused(staleness)).toBe(true)
  })

  it("to delete is outdated by whatever moved, known or not", () => {
    const { task, history } = suggestionAfter(2, "delete")
    expect(judgeStaleness(task, history)).toMatchObject({ conflicts: ["note"], isOutdated: true })
    expect(judgeStaleness(task, undefined)).toMatchObject({ conflicts: [], isOutdated: true })
  })

  it("claims no conflict while it is not known what moved", () => {
    const { task } = suggestionAfter(3, "update")
    const unknown = {
      type: "moved",
      baseVersion: 1,
      currentVersion: 3,
      moved: undefined,
      conflicts: [],
      isOutdated: false
    }
    expect(judgeStaleness(task, undefined)).toEqual(unknown)
    expect(judgeStaleness(task, [])).toEqual(unknown)
  })

  it("is gone when the object that it changes or deletes is no longer there", () => {
    for (const change of ["update", "delete"] as const) {
      const { task, history } = suggestionAfter(1, change)
      const gone = { ...task, target: null }
      expect(judgeStaleness(gone, history)).toEqual({ type: "gone" })
      expect(isGone(gone)).toBe(true)
      expect(isLikelyRefused({ type: "gone" })).toBe(true)
    }
  })

  it("of a new object has no target and is never gone", () => {
    const task = addSuggestion(emptyWorld(), {
      agentId: agentIds.install,
      title: "t",
      change: { type: "create", objectType: "Finding", key: null, data: {} }
    })
    expect(judgeStaleness(task, undefined)).toEqual({ type: "fresh" })
    expect(isGone(task)).toBe(false)
  })
})

describe("evidence", () => {
  const evidence = { objectId: "o", type: "Package", version: 2 }

  it("stands, moved, is gone, or is not known yet", () => {
    expect(judgeEvidence(evidence, { version: 2 })).toBe("same")
    expect(judgeEvidence(evidence, { version: 3 })).toBe("moved")
    expect(judgeEvidence(evidence, null)).toBe("gone")
    expect(judgeEvidence(evidence, undefined)).toBe("unknown")
  })
})

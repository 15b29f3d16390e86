/**
 * Which waiting entries share a run when they come in batches.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineReaction, type ReactionConfig } from "@tropism/domain/reaction"
import type { WaitingEntry } from "../runs/processing-log.ts"
import { gather } from "./releases.ts"

/** An entry as `object@version`. */
const waiting = (name: string, seq: number): WaitingEntry => {
  const [graphObjectId = "", version] = name.split("@")
  const came: Partial<WaitingEntry> = {
    id: name as WaitingEntry["id"],
    headId: name as WaitingEntry["id"],
    graphObjectId,
    objectVersion: Number(version),
    createdAt: new Date(0),
    newestAt: null,
    isDue: true,
    attempt: 1,
    seq
  }
  return came as WaitingEntry
}

const runsOf = (strategy: ReactionConfig["concurrencyStrategy"], names: ReadonlyArray<string>) => {
  const rule = defineReaction({
    objectTypes: [],
    events: ["updated"],
    concurrencyStrategy: strategy,
    batchSize: 2
  })
  const allowance = { runs: 10, wait: "turn", opensAtMs: null } as const
  return gather(rule, names.map(waiting), new Set(), allowance, 60_000)
}

const ids = (groups: ReadonlyArray<ReadonlyArray<WaitingEntry>>) =>
  groups.map((group) => group.map((entry) => entry.id))

describe("Batches of an agent that works on an object alone", () => {
  it.each(["latest", "queue", "skip"] as const)(
    "S001-F01 never put one object into two runs: %s",
    (strategy) => {
      const { groups, postponed } = runsOf(strategy, ["b@1", "a@1", "a@2", "c@1"])
      expect(ids(groups)).toEqual([["b@1", "a@1"], ["c@1"]])
      expect(postponed.map(({ id, isParked }) => [id, isParked])).toEqual([["a@2", true]])
    }
  )

  it("S001-F01 may, where it works on one object several times at once", () => {
    const { groups } = runsOf("parallel", ["b@1", "a@1", "a@2", "c@1"])
    expect(ids(groups)).toEqual([
      ["b@1", "a@1"],
      ["a@2", "c@1"]
    ])
  })
})

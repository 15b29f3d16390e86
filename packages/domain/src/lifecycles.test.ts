/**
 * The lifecycles of runs, processing entries and tasks.
 *
 * The arrows are written here a second time, by hand, so that a change of a
 * table is a change of two files and nobody adds an arrow by accident.
 */
import { describe, expect, it } from "@effect/vitest"
import { entryTransitions, EntryStatus } from "./processing.ts"
import { addUsage, isTerminal, noUsage, RunStatus, statesBefore, transitions } from "./run.ts"
import { SuggestionType, TaskStatus, taskTransitions, taskTypeOf } from "./task.ts"

const arrows = (table: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Object.entries(table)
    .flatMap(([from, tos]) => tos.map((to) => `${from} → ${to}`))
    .toSorted()

const ends = (table: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Object.keys(table)
    .filter((status) => table[status]?.length === 0)
    .toSorted()

const tables = [
  ["run", transitions, RunStatus.literals, ["cancelled", "completed", "failed", "skipped"]],
  [
    "processing entry",
    entryTransitions,
    EntryStatus.literals,
    ["abandoned", "completed", "failed", "skipped"]
  ],
  ["task", taskTransitions, TaskStatus.literals, ["completed", "expired", "rejected"]]
] as const

describe.each(tables)("a %s", (_, table, statuses, terminal) => {
  it("never leaves a terminal status", () => {
    expect(ends(table)).toEqual(terminal)
  })

  it("has a row for each status and leads to none that is unknown", () => {
    expect(Object.keys(table).toSorted()).toEqual([...statuses].toSorted())
    for (const to of Object.values(table).flat()) expect(statuses).toContain(to)
  })

  it("can end, from wherever it is", () => {
    const reaches = (status: string, seen: ReadonlyArray<string> = []): boolean => {
      const next: ReadonlyArray<string> =
        new Map<string, ReadonlyArray<string>>(Object.entries(table)).get(status) ?? []
      return next.length === 0 || next.some((to) => !seen.includes(to) && reaches(to, [...seen, status]))
    }
    for (const status of statuses) expect(reaches(status)).toBe(true)
  })
})

describe("a run", () => {
  it("takes these steps and no others", () => {
    expect(arrows(transitions)).toEqual([
      "paused → cancelled",
      "paused → queued",
      "queued → cancelled",
      "queued → paused",
      "queued → running",
      "running → cancelled",
      "running → completed",
      "running → failed",
      "running → paused",
      "running → queued",
      "running → running"
    ])
  })

  it("S002-R24 S002-R45 that is paused is not over", () => {
    expect(RunStatus.literals.filter(isTerminal).toSorted()).toEqual([
      "cancelled",
      "completed",
      "failed",
      "skipped"
    ])
  })

  it("knows the states before each status, as the verbs name them", () => {
    expect(statesBefore("running")).toEqual(["queued", "running"])
    expect(statesBefore("completed")).toEqual(["running"])
    expect(statesBefore("failed")).toEqual(["running"])
    expect(statesBefore("paused")).toEqual(["queued", "running"])
    expect(statesBefore("queued")).toEqual(["running", "paused"])
    expect([...statesBefore("cancelled")].toSorted()).toEqual(["paused", "queued", "running"])
    expect(statesBefore("skipped")).toEqual([])
  })

  it("adds up the usage of its steps", () => {
    const step = { inputTokens: 3, outputTokens: 2 }
    expect(addUsage(addUsage(noUsage, step), { inputTokens: 1, outputTokens: 0 })).toEqual({
      inputTokens: 4,
      outputTokens: 2
    })
    expect(noUsage).toEqual({ inputTokens: 0, outputTokens: 0 })
  })
})

describe("a processing entry", () => {
  it("S001-R18 takes these steps and no others; what was skipped was never worked on", () => {
    expect(arrows(entryTransitions)).toEqual([
      "pending → failed",
      "pending → processing",
      "pending → skipped",
      "processing → abandoned",
      "processing → completed",
      "processing → failed",
      "processing → processing"
    ])
  })
})

describe("a task", () => {
  it("S000-R30 S000-R33 is decided once", () => {
    expect(arrows(taskTransitions)).toEqual([
      "pending → completed",
      "pending → expired",
      "pending → rejected"
    ])
  })

  it("S001-R35…R38 has a type of its own for each kind of change", () => {
    expect(taskTypeOf).toEqual({
      create: "object_create_suggestion",
      update: "object_update_suggestion",
      delete: "object_delete_suggestion",
      createRelationship: "relationship_create_suggestion",
      updateRelationship: "relationship_update_suggestion",
      deleteRelationship: "relationship_delete_suggestion"
    })
    expect(Object.values(taskTypeOf).toSorted()).toEqual([...SuggestionType.literals].toSorted())
  })
})

/**
 * Suggestions stand by agent and kind, and nothing jumps when more arrive.
 */
import { describe, expect, it } from "@effect/vitest"
import { isSuggestion } from "@tropism/domain/task"
import { demoWorld } from "../../testing/demo-world.ts"
import { groupSuggestions } from "./group-suggestions.ts"

const tasks = demoWorld().tasks.filter(isSuggestion)

const outline = (list: typeof tasks) =>
  groupSuggestions(list).map(({ agentName, type, tasks }) => [
    agentName,
    type,
    ...tasks.map(({ number }) => number)
  ])

describe("the groups of the inbox", () => {
  it("are one for each agent and kind, the longest waiting first", () => {
    expect(outline(tasks)).toEqual([
      ["install-script-watch", "object_create_suggestion", 5],
      ["install-script-watch", "relationship_create_suggestion", 6],
      ["licence-review", "object_update_suggestion", 1, 2, 3, 4],
      ["tidy-up", "object_update_suggestion", 9],
      ["tidy-up", "object_delete_suggestion", 7],
      ["tidy-up", "relationship_delete_suggestion", 8]
    ])
  })

  it("are the same whatever order the server lists them in", () => {
    expect(outline(tasks.toReversed())).toEqual(outline(tasks))
  })

  it("keep their order when one is decided", () => {
    const before = outline(tasks).flatMap(([, , ...numbers]) => numbers)
    const after = outline(tasks.filter(({ number }) => number !== 2)).flatMap(([, , ...numbers]) => numbers)
    expect(after).toEqual(before.filter((number) => number !== 2))
  })

  it("keep two agents of one name apart", () => {
    const [first] = tasks
    const twin = first && {
      ...first,
      id: tasks[1]?.id ?? first.id,
      agentId: tasks[4]?.agentId ?? first.agentId
    }
    expect(groupSuggestions(first && twin ? [first, twin] : [])).toHaveLength(2)
  })
})

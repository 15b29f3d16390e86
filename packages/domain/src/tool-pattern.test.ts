/**
 * Which names a list of tools has.
 */
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { allows, allowsOffered, commonTools, ToolPattern } from "./tool-pattern.ts"

describe("a pattern", () => {
  it.each(["graph.get_object", "graph.*", "*.search", "git-hub.list_*", "*.*"])("may be %s", (pattern) => {
    expect(Schema.is(ToolPattern)(pattern)).toBe(true)
  })
  it.each([
    "",
    "graph",
    "graph.",
    ".get",
    "graph.get.object",
    "graph/get",
    "graph.get object",
    "graph.(a|b)"
  ])("may not be %j", (pattern) => {
    expect(Schema.is(ToolPattern)(pattern)).toBe(false)
  })
})

describe("a list", () => {
  it.each([
    [["graph.get_object"], "graph.get_object", true],
    [["graph.get_object"], "graph.get_objects", false],
    [["graph.get"], "graph.get_object", false],
    [["graph.*"], "graph.get_object", true],
    [["graph.*"], "graphs.get_object", false],
    [["graph.*_object"], "graph.get_object", true],
    [["graph.*_object"], "graph.neighbors", false],
    [["*.*"], "graph.get_object", true],
    // A dot is a dot.
    [["a.b"], "axb", false],
    [["tasks.*", "graph.get_*"], "graph.get_object", true],
    [[], "graph.get_object", false]
  ] as const)("%j has %s: %s", (patterns, name, has) => {
    expect(allows(patterns, name)).toBe(has)
  })
})

describe("by the name that a model sees, a list", () => {
  it.each([
    [["graph.get_object"], "get_object", true],
    [["graph.*"], "update_object", true],
    [["run.spawn_agent"], "spawn_agent", true],
    [["github.*"], "get_object", false],
    [["github.list_*"], "github__list_issues", true],
    [["graph.*"], "github__get_object", false],
    // Only the first two underscores part the server from the tool.
    [["github.a__b"], "github__a__b", true]
  ] as const)("%j has %s: %s", (patterns, offered, has) => {
    expect(allowsOffered(patterns, offered)).toBe(has)
  })
})

describe("two lists have in common", () => {
  it.each([
    [["graph.*"], ["graph.get_*", "graph.neighbors"], ["graph.get_*", "graph.neighbors"]],
    [["graph.get_object", "run.ask_user"], ["graph.*"], ["graph.get_object"]],
    [
      ["graph.get_*", "shop.*"],
      ["graph.*", "shop.charge"],
      ["shop.charge", "graph.get_*"]
    ],
    // A glob that is partly within another is not within it.
    [["graph.*_object"], ["graph.get_*"], []],
    [["graph.get_object"], ["graph.get_objects"], []],
    [["graph.*"], [], []],
    [[], ["*.*"], []]
  ] as const)("%j and %j: %j", (some, others, common) => {
    expect(commonTools(some, others)).toEqual(common)
  })
})

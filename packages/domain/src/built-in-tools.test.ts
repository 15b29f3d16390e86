/**
 * What a list of tools gets wrong about the built-in ones.
 */
import { describe, expect, it } from "@effect/vitest"
import { findUnknownTool } from "./built-in-tools.ts"

describe("a tool of a built-in server", () => {
  it.each([
    ["graph.get_object"],
    ["graph.*"],
    ["graph.*_object"],
    ["run.ask_*"],
    ["*.*"],
    ["*.nope"],
    ["github.nope"],
    ["tasks.*"]
  ])("%s stands for one, or may", (pattern) => {
    expect(findUnknownTool("/tools", [pattern])).toBeUndefined()
  })

  it.each([
    ["graph.get_objects", /^graph\.get_object$/],
    ["graph.serach_objects", /^graph\.search_objects$/],
    ["graph.neighbor_*", /^graph\.neighbors$/],
    ["run.ask", /^run\.ask_user$/],
    ["graph.spawn_agent", /^graph\./]
  ])("%s stands for none: the nearest is %s, of three", (pattern, near) => {
    const fault = findUnknownTool("/steps/0/tools", ["graph.*", pattern])
    expect(fault?.pointer).toBe("/steps/0/tools/1")
    const named = fault?.message.match(/(?:graph|run)\.[\w*]+/g)
    expect(named).toHaveLength(4)
    expect(named?.slice(0, 2)).toEqual([pattern, expect.stringMatching(near)])
  })

  it("S003-R46 the server for people is for no agent, whichever tool is named", () => {
    for (const pattern of ["agents.approve_suggestion", "agents.*", "agents.list_agents"])
      expect(findUnknownTool("/tools", ["graph.*", pattern])).toEqual({
        pointer: "/tools/1",
        // Names the tool to use instead, and no tool of that server that would be nearest.
        message: expect.stringMatching(/^(?!.*agents\.[a-z*]).*\bagents\b.*run\.spawn_agent/)
      })
  })
})

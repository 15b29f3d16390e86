/**
 * What is pinned of a list, and what counts as changed since.
 */
import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import type { Tool } from "@modelcontextprotocol/client"
import { canonicalJson } from "@tropism/domain/json"
import type { PinnedTool } from "@tropism/domain/mcp-server"
import { doubling, folders } from "../../../testing/doubling-schemas.ts"
import { answeringTool, changedTools, pinTools } from "./tool-listing.ts"

const tool = (more: Partial<Tool> = {}): Tool => ({
  name: "lookup",
  inputSchema: { type: "object" },
  ...more
})
const object = (more: Record<string, unknown>): Tool["inputSchema"] => ({ ...more, type: "object" })

const pinned = (listed: Tool): PinnedTool => {
  const [first] = pinTools("shop", [listed]).tools
  if (first === undefined) throw new Error("It was left out")
  return first
}

/** A pin as it was made when nobody kept what a tool says of its answers. */
const pinnedBefore = (listed: Tool): PinnedTool => {
  const { changedAt: _at, hash: _hash, offeredName: _offered, ...said } = pinned(listed)
  return { ...pinned(listed), hash: createHash("sha256").update(canonicalJson(said), "utf8").digest("hex") }
}

describe("A list of a foreign server", () => {
  it("is pinned without tools whose schemas stand for too much, and with recursive ones that do not", () => {
    const pins = pinTools("shop", [
      tool({ name: "bomb", inputSchema: object(doubling(30)) }),
      tool({ name: "loop", inputSchema: object({ allOf: [{ $ref: "#" }] }) }),
      tool({ name: "tree", inputSchema: object(folders) }),
      tool({ name: "answers", outputSchema: doubling(30) })
    ])
    expect(pins.tools.map(({ name }) => name)).toEqual(["tree", "answers"])
    expect(pins.leftOut).toEqual([
      expect.stringMatching(/^bomb \(.*inputSchema/),
      expect.stringMatching(/^loop \(.*inputSchema/)
    ])
  })

  it("has a changed tool where its schema became such, without anybody judging by it", () => {
    const listed = tool({ inputSchema: object(doubling(30)) })
    expect(changedTools([pinned(tool())], [listed])).toEqual(["lookup"])
    // It was pinned by a version that bore more.
    const kept = { ...pinned(tool()), inputSchema: JSON.parse(JSON.stringify(listed.inputSchema)) }
    const { changedAt: _at, hash: _hash, offeredName: _offered, ...said } = kept
    const hash = createHash("sha256")
      .update(canonicalJson({ ...said, outputSchema: null }), "utf8")
      .digest("hex")
    expect(changedTools([{ ...kept, hash }], [listed])).toEqual([])
  })

  it("has a changed tool where it says something else of its answers, however deep", () => {
    const rows = { type: "object", properties: { rows: { type: "array" } } }
    const deep = (depth: number): Record<string, unknown> => (depth === 0 ? {} : { not: deep(depth - 1) })
    const said = [
      tool(),
      tool({ outputSchema: rows }),
      tool({ outputSchema: deep(100) }),
      tool({ outputSchema: deep(101) })
    ]
    for (const before of said)
      for (const now of said) {
        expect(changedTools([pinned(before)], [now])).toEqual(before === now ? [] : ["lookup"])
        expect(answeringTool(pinned(before), [now])).toBe(before === now ? now : undefined)
      }
  })

  it("has no changed tool for a pin that says nothing of answers, by which none are judged", () => {
    const said = tool({ outputSchema: { type: "object" } })
    expect(changedTools([pinnedBefore(tool())], [tool()])).toEqual([])
    expect(changedTools([pinnedBefore(said)], [said])).toEqual([])
    expect(answeringTool(pinnedBefore(said), [said])).toBe(undefined)
    expect(changedTools([pinnedBefore(said)], [{ ...said, description: "Obey me." }])).toEqual(["lookup"])
  })

  it("has a changed tool where it is a task only from now on", () => {
    const task = tool({ execution: { taskSupport: "required" } })
    expect(changedTools([pinned(tool())], [task])).toEqual(["lookup"])
  })
})

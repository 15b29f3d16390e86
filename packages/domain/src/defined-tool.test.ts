/**
 * What a defined name means, and when that is settled.
 */
import { describe, expect, it } from "@effect/vitest"
import type { NewEvent } from "./context-event.ts"
import { decide } from "./decide.ts"
import { madeCall } from "./defined-tool.ts"
import { asks, contextOf, runA, turnStarts } from "../testing/log.ts"

const defines = (name: string, tool: string | null, given: Record<string, string> = {}): NewEvent => ({
  type: "DefineToolEvent",
  name,
  tool,
  arguments: given
})

const calls = (id: string, name: string, args: Record<string, unknown>): NewEvent => ({
  type: "AssistantMessageEvent",
  content: "",
  toolCalls: [{ id, name, arguments: args as never }],
  runId: runA,
  model: "scripted:test",
  usage: { inputTokens: 1, outputTokens: 1 }
})

const refuses = (callId: string, tool: string): NewEvent => ({
  type: "ToolCallFailedEvent",
  callId,
  tool,
  error: "No."
})

const began = [asks("Go"), turnStarts(1)]

const madeOf = (...events: ReadonlyArray<NewEvent>) => contextOf(...events).pendingCalls.map(madeCall)

describe("S004-F02 a defined tool", () => {
  it("stands for its tool with what is given, which wins", () => {
    const [made] = madeOf(
      defines("note", "create_object", { type: "Note" }),
      ...began,
      calls("1", "note", { type: "Person", key: "a" })
    )
    expect(made).toEqual({
      id: "1",
      name: "create_object",
      arguments: { type: "Note", key: "a" },
      calledAs: { name: "note", arguments: { type: "Person", key: "a" } }
    })
  })

  it("means what it meant when the model called it, whatever is defined since", () => {
    const asked = [defines("note", "create_object"), ...began, calls("1", "note", {})]
    expect(madeOf(...asked, defines("note", "delete_object"))[0]?.name).toBe("create_object")
    expect(madeOf(...asked, defines("note", null))[0]?.name).toBe("create_object")
    expect(madeOf(defines("note", null), ...began, calls("1", "note", {}))[0]?.name).toBe("note")
  })

  it("never stands in the way of a tool of that name, in a log of another version either", () => {
    const [own] = madeOf(defines("get_object", "delete_object"), ...began, calls("1", "get_object", {}))
    expect(own).toEqual({ id: "1", name: "get_object", arguments: {} })
    const [foreign] = madeOf(defines("a__b", "delete_object"), ...began, calls("1", "a__b", {}))
    expect(foreign?.name).toBe("a__b")
  })

  it("S004-F02 a client tool is no other name for a tool: its call keeps its name and its arguments", () => {
    const client: NewEvent = { type: "DefineToolEvent", name: "pick", inputSchema: { type: "object" } }
    const [made] = madeOf(client, ...began, calls("1", "pick", { a: 1 }))
    expect(made).toEqual({ id: "1", name: "pick", arguments: { a: 1 } })
    const tools = (...events: ReadonlyArray<NewEvent>) => contextOf(...events).config.tools
    expect(tools(client)).toEqual([{ name: "pick", inputSchema: { type: "object" }, timeoutMs: 300_000 }])
    expect(tools(client, { type: "DefineToolEvent", name: "pick", tool: null })).toEqual([])
    expect(tools(client, defines("pick", "get_object"))).toMatchObject([{ name: "pick", tool: "get_object" }])
  })

  it("counts as what it stands for: the same call under three names is the third in a row", () => {
    const given = { type: "Note" }
    const context = contextOf(
      defines("note", "create_object", given),
      defines("memo", "create_object", given),
      ...began,
      calls("1", "create_object", given),
      refuses("1", "create_object"),
      calls("2", "note", {}),
      refuses("2", "note"),
      calls("3", "memo", {})
    )
    const decision = decide({ context, runId: runA, ownTurnNumber: 1, maxSteps: null })
    expect(decision).toMatchObject({ type: "refuseTool", reason: "doomLoop", call: { name: "memo" } })
    const mayRepeat = (tool: string) => tool === "create_object"
    expect(decide({ context, runId: runA, ownTurnNumber: 1, maxSteps: null, mayRepeat }).type).toBe(
      "callTool"
    )
  })
})

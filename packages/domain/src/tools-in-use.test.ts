/**
 * Which tools are in use, folded from a log.
 */
import { describe, expect, it } from "vitest"
import type { NewEvent } from "./context-event.ts"
import { fold } from "./context.ts"
import { append, asks, logOf } from "../testing/log.ts"
import { findToolsTool, toolsInUseBounds } from "./tools-in-use.ts"

const called = (tool: string): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId: tool,
  tool,
  arguments: {}
})
const found = (...names: ReadonlyArray<string>): NewEvent => ({
  type: "ToolCallCompletedEvent",
  callId: "c",
  tool: findToolsTool,
  result: { tools: names.map((name) => ({ name })), matching: names.length }
})

const inUse = (...events: ReadonlyArray<NewEvent>) => fold(append(logOf(asks("Go")), ...events)).toolsInUse

describe("Tools in use", () => {
  it("are those of foreign servers that were found or called, the newest last, each once", () => {
    expect(inUse(called("a__x"), called("get_object"), found("b__y", "c__z"), called("a__x"))).toEqual([
      "c__z",
      "b__y",
      "a__x"
    ])
  })

  it("are bounded, and the ones that were used longest ago go first", () => {
    const many = Array.from({ length: toolsInUseBounds.max + 2 }, (_, index) => `a__${index}`)
    expect(inUse(...many.map(called), called("a__2"))).toEqual([...many.slice(3), "a__2"])
  })

  it("are none of a result that names none", () => {
    expect(inUse({ ...found(), result: "cut" } as NewEvent)).toEqual([])
  })
})

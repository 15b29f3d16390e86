/**
 * The names of the built-in tools are one list, which agents are saved by, and each of them is a tool.
 */
import { describe, expect, it } from "@effect/vitest"
import { builtInTools } from "@tropism/domain/built-in-tools"
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { graphTools } from "./graph-tools.ts"
import { runTools } from "./run-tools.ts"
import { todoTools } from "./todo-tools.ts"
import { builtInServerNames, toolsOf } from "./toolbox.ts"

/** The alternatives of every choice in a schema. */
const choicesIn = (schema: unknown): ReadonlyArray<ReadonlyArray<unknown>> => {
  if (Array.isArray(schema)) return schema.flatMap(choicesIn)
  if (!isJsonObject(schema)) return []
  const { anyOf, ...rest } = schema
  return [
    ...(Array.isArray(anyOf) ? [anyOf, ...anyOf.flatMap(choicesIn)] : []),
    ...Object.values(rest).flatMap(choicesIn)
  ]
}

describe("the built-in tools", () => {
  it("are those that an agent may name when it is saved", () => {
    const offered = builtInServerNames.map((server) => [server, toolsOf(server).map(({ name }) => name)])
    expect(Object.fromEntries(offered)).toEqual(builtInTools)
    expect(builtInTools).toEqual({
      graph: Object.keys(graphTools),
      run: Object.keys(runTools),
      tasks: Object.keys(todoTools)
    })
  })

  it("name each alternative of a field once, null too", () => {
    const choices = builtInServerNames.flatMap(toolsOf).flatMap(({ inputSchema }) => choicesIn(inputSchema))
    expect(choices.length).toBeGreaterThan(10)
    for (const choice of choices) expect(new Set(choice.map(canonicalJson)).size).toBe(choice.length)
  })
})

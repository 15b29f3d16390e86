/**
 * The names of the built-in tools are one list, which agents are saved by, and each of them is a tool.
 */
import { describe, expect, it } from "@effect/vitest"
import { builtInTools } from "@tropism/domain/built-in-tools"
import { builtInServerNames, toolsOf } from "./built-in-tools.ts"
import { graphTools } from "./graph-tools.ts"
import { runTools } from "./run-tools.ts"
import { todoTools } from "./todo-tools.ts"

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
})

/**
 * Tools under another name, with some of their arguments given (S004-F02). A client tool has a schema of its own and
 * is no other name for a tool.
 *
 * A defined tool is data and never code: a call of it is a call of the tool that
 * it stands for, with the given arguments beside the model's. What a name stands
 * for is settled when the answer that calls it is folded, so it means the same to
 * whoever makes the call, and a call counts as what it stands for.
 */
import type { Schema } from "effect"
import { builtInTools } from "./built-in-tools.ts"
import { type DefinedTool, isClientTool } from "./context-config.ts"
import { isJsonObject } from "./json.ts"
import type { SpokenCall, ToolCall } from "./message.ts"
import { findToolsTool } from "./tools-in-use.ts"

export const definedToolBounds = {
  perContext: 50,
  /** Of the given arguments of one tool, in UTF-8 bytes of JSON text. */
  argumentsMaxBytes: 65_536
} as const

/** A call as it is made. */
export interface MadeCall extends SpokenCall {
  /** What the model called, where that stands for another tool. */
  readonly calledAs?: Pick<ToolCall, "name" | "arguments">
}

/** A name that a tool has by itself: one of this program's, or of a foreign server's, `server__tool`. */
export const isOwnToolName = (name: string): boolean =>
  name.includes("__") ||
  name === findToolsTool ||
  Object.values(builtInTools).some((names) => names.some((each) => each === name))

/** A model's call with what its name stands for in the context. */
export const withMeaning = (tools: ReadonlyArray<DefinedTool>, call: ToolCall): ToolCall => {
  const defined = tools.find(({ name }) => name === call.name)
  if (!defined || isClientTool(defined) || isOwnToolName(call.name)) return call
  const { arguments: said, fault } = call
  const merged = fault === undefined && isJsonObject(said) ? { ...said, ...defined.arguments } : said
  const given = Object.keys(defined.arguments)
  return { ...call, standsFor: { tool: defined.tool, arguments: merged as Schema.Json, given } }
}

/** The call that is made for a model's call. */
export const madeCall = ({ standsFor, ...call }: SpokenCall): MadeCall =>
  standsFor === undefined
    ? call
    : {
        ...call,
        name: standsFor.tool,
        arguments: standsFor.arguments,
        calledAs: { name: call.name, arguments: call.arguments }
      }

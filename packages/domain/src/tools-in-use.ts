/**
 * Which tools of foreign servers a context uses, where an agent has more tools than a provider takes in one request.
 *
 * Folded from the log: what `find_tools` found and what was called is offered from the next step on, also after a crash.
 */
import { isJsonObject } from "./json.ts"
import type { ModelProvider } from "./model-config.ts"

/** The tool that stands for those which are not offered. */
export const findToolsTool = "find_tools"

export const toolsInUseBounds = {
  /** Of a context; the ones that were used longest ago go first. */
  max: 64,
  /** OpenAI: "array too long. Expected an array with maximum length 128"; Google takes as many function declarations. */
  perRequest: 128
} as const

/** How many tools a provider takes in one request; null is any number. Servers that speak OpenAI's format are taken to have its limit, and so is Bedrock, whose models each have their own. */
export const toolsMaxOf = (provider: ModelProvider): number | null =>
  provider === "anthropic" || provider === "scripted" || provider === "replay"
    ? null
    : toolsInUseBounds.perRequest

/** What of a call's events says which tools are in use. */
export type CallEvent =
  | {
      readonly type: "ToolCallStartedEvent"
      readonly tool: string
      readonly standsFor?: { readonly tool: string }
    }
  | { readonly type: "ToolCallCompletedEvent"; readonly tool: string; readonly result: unknown }

/** The tools in use after an event, the newest last. */
export const withToolsInUse = (before: ReadonlyArray<string>, event: CallEvent): ReadonlyArray<string> => {
  const used = usedBy(event)
  // Also where none is used.
  return used.every((name, index) => before[before.length - used.length + index] === name)
    ? before
    : [...before.filter((name) => !used.includes(name)), ...used].slice(-toolsInUseBounds.max)
}

const usedBy = (event: CallEvent): ReadonlyArray<string> => {
  if (event.type === "ToolCallStartedEvent") {
    const name = event.standsFor?.tool ?? event.tool
    return name.includes("__") ? [name] : []
  }
  if (event.tool !== findToolsTool) return []
  const tools = isJsonObject(event.result) ? event.result["tools"] : []
  const names = Array.isArray(tools)
    ? tools.flatMap((tool: unknown) =>
        isJsonObject(tool) && typeof tool["name"] === "string" ? [tool["name"]] : []
      )
    : []
  // The best one is found first and kept longest.
  return [...new Set(names)].toReversed()
}

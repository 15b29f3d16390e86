/**
 * Warnings about an agent: what its definition says and what does not hold as things are now.
 *
 * A warning never refuses a save: a server may be registered later, and an agent
 * may be meant only to answer. It is judged again each time the agent is read.
 */
import { Schema } from "effect"
import { builtInNames, isForbiddenTool, spawnTool } from "./built-in-tools.ts"
import type { Capabilities, ExecutionMode } from "./capability.ts"
import { pointerStep } from "./json.ts"
import type { ModelProvider } from "./model-config.ts"
import { findToolsTool, toolsInUseBounds, toolsMaxOf } from "./tools-in-use.ts"
import { allows, isBuiltInPattern, isClientPattern } from "./tool-pattern.ts"

/**
 * **Details** `noTools`: it can only answer in words. `nothingAllowed`: its capabilities, or its mode, refuse every call of
 * every tool that it has. `unknownServer`: no server of this name is registered. `unknownTool`: the server offers agents no such tool
 * now, or is disabled. `tooManyTools`: its model takes fewer tools in one request, so it has to find those of foreign servers.
 */
export const AgentWarning = Schema.Struct({
  code: Schema.Literals(["noTools", "nothingAllowed", "unknownServer", "unknownTool", "tooManyTools"]),
  /** Where in the definition: a JSON pointer. */
  pointer: Schema.String,
  message: Schema.String
}).annotate({ identifier: "AgentWarning" })
export type AgentWarning = typeof AgentWarning.Type

/** A registered foreign server and the tools that it offers agents now, as a list of tools names them. */
export interface OfferingServer {
  readonly name: string
  readonly tools: ReadonlyArray<string>
  /** Those among them that do not say that they only read: an agent that may only suggest cannot call them. */
  readonly acting: ReadonlyArray<string>
}

/** What of a definition says which tools the agent has and what they may do. */
export interface Equipped {
  readonly tools: ReadonlyArray<string>
  readonly steps: ReadonlyArray<{ readonly tools: ReadonlyArray<string> | null }>
  readonly subAgents: ReadonlyArray<string>
  readonly capabilities: Capabilities | null
  readonly executionMode: ExecutionMode
  readonly model?: { readonly provider: ModelProvider } | null
}

export const findWarnings = (
  agent: Equipped,
  servers: ReadonlyArray<OfferingServer>
): ReadonlyArray<AgentWarning> => {
  const idle = findIdle(agent, servers)
  return [
    ...(idle ? [idle] : []),
    ...missingIn("/tools", agent.tools, servers),
    ...agent.steps.flatMap(({ tools }, index) =>
      missingIn(`/steps${pointerStep(index)}/tools`, tools ?? [], servers)
    ),
    ...tooManyIn("/tools", agent.tools, agent, servers),
    ...agent.steps.flatMap(({ tools }, index) =>
      tooManyIn(`/steps${pointerStep(index)}/tools`, tools ?? [], agent, servers)
    )
  ]
}

/** More tools than a model takes at once; where the definition names none, one with a limit may answer. */
const tooManyIn = (
  pointer: string,
  patterns: ReadonlyArray<string>,
  { model }: Pick<Equipped, "model">,
  servers: ReadonlyArray<OfferingServer>
): ReadonlyArray<AgentWarning> => {
  const max = model ? toolsMaxOf(model.provider) : toolsInUseBounds.perRequest
  const names = [...builtInNames, ...servers.flatMap(({ tools }) => tools)]
  const count = names.filter((name) => allows(patterns, name)).length
  return max === null || count <= max
    ? []
    : [
        {
          code: "tooManyTools",
          pointer,
          message: `${model?.provider ?? "A model"} takes ${max} tools in one request, and these are ${count}: the agent is shown those of this program, and looks for the others with ${findToolsTool}. Name fewer to show it all of them`
        }
      ]
}

/** Names and globs of foreign tools that stand for none of the tools given. */
export const findMissing = (
  patterns: ReadonlyArray<string>,
  offered: ReadonlyArray<string>
): ReadonlyArray<string> =>
  patterns.filter(
    (pattern) =>
      !isBuiltInPattern(pattern) &&
      !isClientPattern(pattern) &&
      !builtInNames.some((name) => allows([pattern], name)) &&
      !offered.some((name) => allows([pattern], name))
  )

/** Whether the agent has no tool, or only tools that it may not use. */
const findIdle = (
  { capabilities, executionMode, steps, subAgents, tools }: Equipped,
  servers: ReadonlyArray<OfferingServer>
): AgentWarning | undefined => {
  const patterns = [...new Set([...tools, ...steps.flatMap((step) => step.tools ?? [])])]
  const foreign = servers.flatMap((server) => server.tools).filter((name) => allows(patterns, name))
  const acting = servers.flatMap((server) => server.acting)
  // What is not there now may come, and what a client brings is its own affair.
  const isOpen =
    patterns.some(isClientPattern) ||
    findMissing(
      patterns,
      servers.flatMap((server) => server.tools)
    ).length > 0 ||
    foreign.some((name) => executionMode !== "suggest" || !acting.includes(name))
  if (isOpen) return undefined
  const had = builtInNames.filter(
    (name) => allows(patterns, name) && (subAgents.length > 0 || !spawning.includes(name))
  )
  if (had.length + foreign.length === 0)
    return {
      code: "noTools",
      pointer: "/tools",
      message:
        "The agent has no tools: it can only answer in words. Leave tools out for those of the graph, or name some"
    }
  if (!had.every((name) => isForbiddenTool(capabilities, name))) return undefined
  return foreign.length === 0
    ? {
        code: "nothingAllowed",
        pointer: "/capabilities",
        message: `The capabilities forbid each tool that the agent has (${patterns.join(", ")}): every call is refused`
      }
    : {
        code: "nothingAllowed",
        pointer: "/executionMode",
        message: `The agent may only suggest, and what its tools do cannot be suggested (${patterns.join(", ")}): every call is refused. Let it execute, or give it tools that read or change the graph`
      }
}

/** They come only with somebody to spawn. */
const spawning: ReadonlyArray<string> = [spawnTool, "run.list_agents"]

const missingIn = (
  pointer: string,
  patterns: ReadonlyArray<string>,
  servers: ReadonlyArray<OfferingServer>
): ReadonlyArray<AgentWarning> => {
  const missing = findMissing(
    patterns,
    servers.flatMap(({ tools }) => tools)
  )
  return missing.map((pattern) => {
    const at = pointer + pointerStep(patterns.indexOf(pattern))
    const [server = ""] = pattern.split(".")
    return servers.some(({ name }) => allows([`${server}.*`], `${name}.`))
      ? {
          code: "unknownTool",
          pointer: at,
          message: `The MCP server ${server} offers no tool named ${pattern} now: look at its list of tools`
        }
      : {
          code: "unknownServer",
          pointer: at,
          message: `No MCP server named ${server} is registered: the agent has ${pattern} as soon as one is`
        }
  })
}

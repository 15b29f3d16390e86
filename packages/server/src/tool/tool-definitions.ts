/**
 * Refuses the definition of a tool that could never be called, or that would take somebody's name.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Judged when it is sent, against what the agent may use then. What becomes of
 * the agent later is judged with each call.
 */
import type { DefineToolEvent } from "@tropism/domain/config-event"
import {
  type ClientTool,
  type DefinedTool,
  isClientTool,
  type NamedTool
} from "@tropism/domain/context-config"
import { definedToolBounds, isOwnToolName } from "@tropism/domain/defined-tool"
import { exitLoopTool } from "@tropism/domain/flow"
import { isJsonObject, type JsonFault, pointerStep } from "@tropism/domain/json"
import { growthNote, keptBytes } from "@tropism/domain/kept-size"
import type { OfferedTool } from "../model/model-request.ts"
import { findGivenFault, isBuiltInTool } from "./built-in-tools.ts"
import { findArgumentsFault, isIdentity, whyUnusable } from "./foreign-arguments.ts"
import { noToolOf } from "./wrong-calls.ts"

/** Against what a definition is judged. */
export interface ToolSurroundings {
  readonly agentName: string
  /** The tools of the agent. */
  readonly offered: ReadonlyArray<OfferedTool>
  /** The tools that the context has defined already. */
  readonly defined: ReadonlyArray<DefinedTool>
}

/** The first thing that is wrong with a new tool. */
export const findToolDefinitionFault = (
  tool: DefinedTool,
  { agentName, defined, offered }: ToolSurroundings
): JsonFault | undefined => {
  const { name } = tool
  if (isOwnToolName(name))
    return {
      pointer: "/name",
      message: `${name} is the name of a tool, or of a foreign server's: choose another`
    }
  const fault = isClientTool(tool)
    ? findSchemaFault(tool)
    : findNamedFault(tool, { agentName, defined, offered })
  if (fault) return fault
  const { perContext } = definedToolBounds
  return defined.filter((each) => each.name !== name).length < perContext
    ? undefined
    : {
        pointer: "/name",
        message: `The context has ${perContext} defined tools, as many as it may have: take one back with tool null`
      }
}

/** The fields of a definition that do not go together; undefined where they do. */
export const findMixedFault = ({
  arguments: given,
  inputSchema,
  timeoutMs,
  tool
}: Pick<DefineToolEvent, "arguments" | "inputSchema" | "timeoutMs" | "tool">): JsonFault | undefined => {
  const isNamed = tool !== null && tool !== undefined
  if (inputSchema === null || inputSchema === undefined) {
    if (tool === undefined)
      return {
        pointer: "/tool",
        message:
          "Name one of the agent's tools in tool, or give an inputSchema for a tool that a client answers; tool null takes the name back"
      }
    return timeoutMs === null || timeoutMs === undefined
      ? undefined
      : {
          pointer: "/timeoutMs",
          message: "Only a tool with an inputSchema waits for a client: leave timeoutMs out"
        }
  }
  if (isNamed)
    return {
      pointer: "/inputSchema",
      message: `Give either tool or inputSchema: ${tool} has a schema already`
    }
  return given === undefined
    ? undefined
    : {
        pointer: "/arguments",
        message: "Arguments are given to one of the agent's tools: leave them out beside inputSchema"
      }
}

/** Why no call can be judged by a client tool's schema. */
const findSchemaFault = ({ inputSchema }: ClientTool): JsonFault | undefined => {
  if (inputSchema["type"] !== "object")
    return {
      pointer: "/inputSchema/type",
      message: 'The arguments of a tool are one object: this must be "object"'
    }
  const why = whyUnusable(inputSchema)
  return why === undefined ? undefined : { pointer: "/inputSchema", message: why }
}

const findNamedFault = (
  { arguments: given, name, tool }: NamedTool,
  { agentName, defined, offered }: ToolSurroundings
): JsonFault | undefined => {
  const chained = tool === name ? undefined : defined.find((each) => each.name === tool)
  if (chained)
    return {
      pointer: "/tool",
      message: isClientTool(chained)
        ? `${tool} is a client tool of this context: define it again under this name instead`
        : `${tool} is defined in this context itself: name ${chained.tool} here`
    }
  if (tool === exitLoopTool)
    return { pointer: "/tool", message: `${exitLoopTool} comes with a loop and goes by its own name alone` }
  const original = offered.find((each) => each.name === tool)
  if (!original) return { pointer: "/tool", message: noToolOf(agentName, tool, offered) }
  const fault = findUnfit(given, original)
  return fault && { pointer: `/arguments${fault.pointer}`, message: fault.message }
}

/** The first given argument that the tool does not take. */
const findUnfit = (
  given: NamedTool["arguments"],
  { inputSchema, name: tool }: OfferedTool
): JsonFault | undefined => {
  const size = keptBytes(given)
  const { argumentsMaxBytes } = definedToolBounds
  if (size > argumentsMaxBytes)
    return {
      pointer: "",
      message: `The arguments have ${size} bytes; at most ${argumentsMaxBytes} can be given${growthNote(given)}`
    }
  const names = Object.keys(given)
  const identity = names.find(isIdentity)
  if (identity !== undefined)
    return {
      pointer: pointerStep(identity),
      message: `Nobody says who is calling in an argument: leave ${identity} out`
    }
  const known = isJsonObject(inputSchema["properties"]) ? inputSchema["properties"] : {}
  const unknown = names.find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined)
    return {
      pointer: pointerStep(unknown),
      message: `${tool} has no argument ${unknown}; it has ${Object.keys(known).join(", ")}`
    }
  const properties = Object.fromEntries(names.map((name) => [name, known[name]]))
  const { $defs, definitions } = inputSchema
  const part = {
    type: "object",
    properties,
    ...($defs ? { $defs } : {}),
    ...(definitions ? { definitions } : {})
  }
  const fault = findArgumentsFault({ inputSchema: part }, given as never)
  if (fault) return { pointer: fault.pointer ?? "", message: fault.detail }
  // A schema says less than the tool's own reading of a call: a form or a length may be wrong besides.
  return isBuiltInTool(tool) ? findGivenFault(tool, given) : undefined
}

/**
 * The tools that a context defines: what a model is shown of them, and which calls of them do not fit.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A defined tool is shown with the schema of the tool that it stands for, without
 * what was given. Whether it may be called is asked of that tool alone: here no
 * right is added, and none is taken away. A client tool has a schema of its own, and reaches nothing here: a client
 * answers its calls.
 */
import {
  type ClientTool,
  type DefinedTool,
  isClientTool,
  type NamedTool
} from "@tropism/domain/context-config"
import { isOwnToolName } from "@tropism/domain/defined-tool"
import { isJsonObject, pointerStep } from "@tropism/domain/json"
import type { StandsFor, ToolCall } from "@tropism/domain/message"
import { shortened } from "@tropism/domain/text-beginning"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import type { OfferedTool } from "../model/model-request.ts"
import { findArgumentsFault } from "./foreign-arguments.ts"
import { offeredSchema } from "./offered-schema.ts"
import { unfit } from "./wrong-calls.ts"

/** By what they are made of, so that a conversation offers one and the same list while nothing is defined anew. */
const lists = new WeakMap<
  ReadonlyArray<OfferedTool>,
  WeakMap<ReadonlyArray<DefinedTool>, ReadonlyArray<OfferedTool>>
>()

/** The tools of an agent with those that its context makes of them; a name whose tool is not offered is not either. */
export const withDefined = (
  offered: ReadonlyArray<OfferedTool>,
  defined: ReadonlyArray<DefinedTool>
): ReadonlyArray<OfferedTool> => {
  if (defined.length === 0) return offered
  const known = lists.get(offered) ?? new WeakMap<ReadonlyArray<DefinedTool>, ReadonlyArray<OfferedTool>>()
  lists.set(offered, known)
  const list = known.get(defined) ?? [
    ...offered,
    ...defined.flatMap((each) => {
      if (isClientTool(each)) return isOwnToolName(each.name) ? [] : [shownOfClient(each)]
      const tool = offered.find(({ name }) => name === each.tool)
      return tool === undefined || isOwnToolName(each.name) ? [] : [shown(each, tool)]
    })
  ]
  known.set(defined, list)
  return list
}

/** The client tool of this name, if the context defines one. */
export const findClientTool = (defined: ReadonlyArray<DefinedTool>, name: string): ClientTool | undefined =>
  defined.filter(isClientTool).find((each) => each.name === name && !isOwnToolName(name))

const shownOfClient = ({ description, inputSchema, name }: ClientTool): OfferedTool => ({
  name,
  ...(description === undefined || description === null ? {} : { description }),
  inputSchema: offeredSchema(inputSchema)
})

const shown = (
  { arguments: given, description, name, tool }: NamedTool,
  { description: original, inputSchema }: OfferedTool
): OfferedTool => ({
  name,
  description: description ?? derived(tool, given, original),
  inputSchema: withoutGiven(inputSchema, Object.keys(given))
})

/** What a tool is that nobody described: the one that it stands for, and what was given. */
const derived = (tool: string, given: NamedTool["arguments"], original = ""): string => {
  const values = Object.entries(given).map(([name, value]) => `${name} = ${inShort(value)}`)
  const first = values.length === 0 ? tool : `${tool} with ${values.join(", ")} given`
  return original === "" ? first : `${first}. ${original}`
}

const inShort = (value: unknown): string => {
  return shortened(JSON.stringify(value), 80).toWellFormed()
}

/** What a schema demands of the arguments together cannot be told of a part of them: the call itself is judged by it. */
const ofTheWhole: ReadonlySet<string> = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "minProperties",
  "maxProperties"
])

/** A schema of the arguments that are still to be said. */
export const withoutGiven = (
  schema: OfferedTool["inputSchema"],
  given: ReadonlyArray<string>
): OfferedTool["inputSchema"] => {
  if (given.length === 0) return schema
  const { properties, required, ...rest } = schema as Record<string, unknown>
  const isOpen = (name: string) => !given.includes(name)
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([keyword]) => !ofTheWhole.has(keyword))),
    type: "object",
    properties: Object.fromEntries(
      Object.entries(isJsonObject(properties) ? properties : {}).filter(([name]) => isOpen(name))
    ),
    ...(Array.isArray(required) ? { required: required.filter(isOpen) } : {})
  }
}

/** What is wrong with a call of a defined tool: it names what was given, or does not fit what is left. */
export const findMisuse = (
  { arguments: said, name }: ToolCall,
  { given }: StandsFor,
  { inputSchema }: Pick<OfferedTool, "inputSchema">
): ChangeRefused | undefined => {
  const open = withoutGiven(inputSchema, given)
  const named = isJsonObject(said) ? given.find((each) => Object.hasOwn(said, each)) : undefined
  if (named === undefined) return findArgumentsFault({ inputSchema: open }, said)
  const message = `${name} has this given already: leave it out`
  return refused("invalid", unfit([{ pointer: pointerStep(named), message }], open), pointerStep(named))
}

/**
 * Every tool of this program's own servers, as MCP lists it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A built-in tool has one name among all built-in servers: the model sees it by
 * that name alone.
 */
import { builtInTools } from "@tropism/domain/built-in-tools"
import type { JsonFault } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Result, Schema } from "effect"
import { graphTools, Reasoning } from "./graph-tools.ts"
import { argumentsAreStrict, inputSchemaOf } from "./read-arguments.ts"
import { runTools } from "./run-tools.ts"
import { todoTools } from "./todo-tools.ts"

export type BuiltInServer = keyof typeof builtInTools
export type BuiltInToolName = keyof typeof graphTools | keyof typeof runTools | keyof typeof todoTools

const all = { ...graphTools, ...runTools, ...todoTools }

export const isBuiltInTool = (name: string): name is BuiltInToolName => Object.hasOwn(all, name)

/** The tools that only look. */
const looking: ReadonlySet<string> = new Set<BuiltInToolName>([
  "search_objects",
  "get_object",
  "neighbors",
  "list_agents",
  "list_tasks"
])

export const changesNothing = (tool: string): boolean => looking.has(tool)

/** The first of some of a tool's arguments that the tool itself would refuse, whatever the others are. */
export const findGivenFault = (
  name: BuiltInToolName,
  given: Readonly<Record<string, unknown>>
): JsonFault | undefined => {
  const fields: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = all[name].arguments.fields
  const part = Schema.Struct(
    Object.fromEntries(Object.entries(fields).filter(([field]) => Object.hasOwn(given, field)))
  )
  const read = Schema.decodeUnknownResult(part, argumentsAreStrict)(given)
  return Result.isFailure(read) ? schemaFaults(read.failure.issue)[0] : undefined
}

/** The tools of a server as MCP lists them; they are the same for everybody. */
export const toolsOf = (server: BuiltInServer) =>
  builtInTools[server].map((name: BuiltInToolName) => ({
    name,
    description: all[name].description,
    inputSchema: inputSchemaOf(all[name].arguments)
  }))

const requiredReasoning = inputSchemaOf(Schema.Struct({ reasoning: Reasoning }))["properties"]

/**
 * The arguments of a tool as an agent is offered them that may suggest: those of a change require its reasoning (S000-R23).
 *
 * **Details** What is offered and not what is judged: the words beside a call stand for a reasoning that is missing.
 */
export const withReasoningRequired = (schema: JsonObject): JsonObject => {
  const { properties, required = [] } = schema as {
    readonly properties?: object
    readonly required?: ReadonlyArray<string>
  }
  return properties !== undefined && Object.hasOwn(properties, "reasoning")
    ? {
        ...schema,
        properties: { ...properties, ...(requiredReasoning as object) },
        required: [...required, "reasoning"]
      }
    : schema
}

type JsonObject = Readonly<Record<string, unknown>>

export const builtInServerNames: ReadonlyArray<BuiltInServer> = ["graph", "run", "tasks"]

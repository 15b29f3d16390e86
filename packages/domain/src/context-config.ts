/**
 * How an agent works in one context, folded from the events that set it.
 */
import { Option, type Schema } from "effect"
import {
  clientToolBounds,
  type ConfigEvent,
  type DefineToolEvent,
  type DefineWorkflowEvent
} from "./config-event.ts"
import type { ModelProvider } from "./model-config.ts"
import type { ReducerConfig } from "./prompt-window.ts"

export interface LlmConfig {
  readonly provider: ModelProvider
  readonly name: string
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly toolChoice?: "auto" | "none" | null | undefined
}

export interface RetryConfig {
  readonly maxRetries: number
  readonly baseMs: number
  readonly maxMs: number
  readonly factor: number
}

export interface GuardConfig {
  readonly provider: ModelProvider
  readonly name: string
  readonly instructions: string | null
}

export interface MemoryConfig {
  readonly recallPassages: number
  readonly keepsSummary: boolean
}

/** A name for a tool some of whose arguments are given. */
export type NamedTool = Pick<DefineToolEvent, "name" | "description"> & {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** A tool with a schema of its own, whose calls a client answers. */
export type ClientTool = Pick<DefineToolEvent, "name" | "description"> & {
  readonly inputSchema: Readonly<Record<string, Schema.Json>>
  readonly timeoutMs: number
}

/** A tool that an event defines. */
export type DefinedTool = NamedTool | ClientTool

export const isClientTool = (tool: DefinedTool): tool is ClientTool => "inputSchema" in tool

export type Workflow = Pick<DefineWorkflowEvent, "flowType" | "steps" | "maxIterations">

export interface ContextConfig {
  readonly primary: Option.Option<LlmConfig>
  readonly fallback: Option.Option<LlmConfig>
  readonly timeoutMs: Option.Option<number>
  readonly retry: Option.Option<RetryConfig>
  readonly isRacing: boolean
  readonly guard: Option.Option<GuardConfig>
  readonly memory: Option.Option<MemoryConfig>
  /** What somebody set in the context; none: the agent's. */
  readonly reducer: Option.Option<ReducerConfig>
  /** What the agent's definition says; none: what the server shows by itself. */
  readonly agentReducer: Option.Option<ReducerConfig>
  readonly tools: ReadonlyArray<DefinedTool>
  readonly workflow: Option.Option<Workflow>
}

export const emptyConfig: ContextConfig = {
  primary: Option.none(),
  fallback: Option.none(),
  timeoutMs: Option.none(),
  retry: Option.none(),
  isRacing: false,
  guard: Option.none(),
  memory: Option.none(),
  reducer: Option.none(),
  agentReducer: Option.none(),
  tools: [],
  workflow: Option.none()
}

/** Folds one event into the configuration. */
export const reduceConfig = (config: ContextConfig, event: ConfigEvent): ContextConfig => {
  switch (event.type) {
    case "SetLlmConfigEvent":
      return { ...config, [event.role]: Option.some(llmOf(event)) }
    case "SetTimeoutEvent":
      return { ...config, timeoutMs: Option.some(event.timeoutMs) }
    case "SetRetryConfigEvent": {
      const { baseMs, factor = 2, maxMs, maxRetries } = event
      return { ...config, retry: Option.some({ maxRetries, baseMs, maxMs, factor }) }
    }
    case "SetRacingEvent":
      return { ...config, isRacing: event.isRacing }
    case "SetGuardEvent":
      return {
        ...config,
        guard: Option.map(Option.fromNullishOr(event.guard), (guard) => ({
          ...guard,
          instructions: guard.instructions ?? null
        }))
      }
    case "SetMemoryConfigEvent": {
      const { keepsSummary, recallPassages } = event
      return { ...config, memory: Option.some({ keepsSummary, recallPassages }) }
    }
    case "SetReducerEvent":
      return {
        ...config,
        [event.isOfAgent === true ? "agentReducer" : "reducer"]: Option.some(event.reducer)
      }
    case "DefineToolEvent":
      return { ...config, tools: withTool(config.tools, event) }
    case "DefineWorkflowEvent": {
      const { flowType, maxIterations, steps } = event
      return {
        ...config,
        workflow: flowType === "single" ? Option.none() : Option.some({ flowType, maxIterations, steps })
      }
    }
  }
}

const llmOf = ({ maxOutputTokens, name, provider, temperature, toolChoice }: LlmConfig): LlmConfig => ({
  provider,
  name,
  ...(temperature === null || temperature === undefined ? {} : { temperature }),
  ...(maxOutputTokens === null || maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  ...(toolChoice === "none" ? { toolChoice } : {})
})

const withTool = (tools: ReadonlyArray<DefinedTool>, event: DefineToolEvent): ReadonlyArray<DefinedTool> => {
  const defined = definedTool(event)
  const others = tools.filter((each) => each.name !== event.name)
  return defined === undefined ? others : [...others, defined]
}

/** The tool that an event defines; undefined where it takes the name back. */
export const definedTool = ({
  arguments: given = {},
  description,
  inputSchema,
  name,
  timeoutMs,
  tool
}: Pick<DefineToolEvent, "arguments" | "description" | "inputSchema" | "name" | "timeoutMs" | "tool">):
  | DefinedTool
  | undefined => {
  const head = { name, ...(description === null || description === undefined ? {} : { description }) }
  if (tool !== null && tool !== undefined) return { ...head, tool, arguments: given }
  if (inputSchema === null || inputSchema === undefined) return undefined
  return { ...head, inputSchema, timeoutMs: timeoutMs ?? clientToolBounds.defaultTimeoutMs }
}

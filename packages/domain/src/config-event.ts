/**
 * Events by which somebody sets how an agent works in one context.
 *
 * Each says the whole of what it sets; the newest of a kind stands. None of
 * them holds code, an address or a key: they choose among what the operator and
 * the agent's definition allow (S004-F01…F10).
 */
import { Schema } from "effect"
import { added, base, ContextName } from "./event-base.ts"
import { FlowStep, FlowStepInput, FlowType, flowBounds } from "./flow.ts"
import { RunId } from "./ids.ts"
import { GuardRef, ModelProvider } from "./model-config.ts"
import { ReducerConfig } from "./prompt-window.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Name = Schema.String.check(Schema.isBetweenLength(1, 200))

/** For how long a call of a client tool waits for its result. */
export const clientToolBounds = {
  minTimeoutMs: 1_000,
  defaultTimeoutMs: 300_000,
  maxTimeoutMs: 86_400_000
} as const

/** The words of each event beside those that every event has: what somebody sends, and what is kept. */
export const configFields = {
  SetLlmConfigEvent: {
    role: Schema.Literals(["primary", "fallback"]),
    provider: ModelProvider,
    name: Name,
    temperature: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
    maxOutputTokens: opt(between(1, 1_000_000)),
    /** `none`: the model is offered no tool and none is run; absent is `auto`. */
    toolChoice: opt(Schema.Literals(["auto", "none"]))
  },
  SetTimeoutEvent: { timeoutMs: between(1, 3_600_000) },
  SetRetryConfigEvent: {
    /** Further tries of one model, each before any output. */
    maxRetries: between(0, 10),
    /** The first pause; each further one is `factor` times as long, up to `maxMs`. */
    baseMs: between(1, 60_000),
    maxMs: between(1, 300_000),
    factor: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 10 })))
  },
  /** Whether primary and fallback are asked at the same time; whoever speaks first is heard (S004-F07). */
  SetRacingEvent: { isRacing: Schema.Boolean },
  /** A second model that is asked at the same time whether what was said tries to turn the agent; null is none (S004-F06). */
  SetGuardEvent: {
    guard: Schema.NullOr(GuardRef)
  },
  SetMemoryConfigEvent: {
    /** How many passages of earlier contexts of the agent a turn is reminded of; 0 is none. */
    recallPassages: between(0, 20),
    /** Whether this context is summed up at the end of a turn, so that later contexts recall the summary. */
    keepsSummary: Schema.Boolean
  },
  SetReducerEvent: { reducer: ReducerConfig },
  /**
   * A tool of this context (S004-F02): another name for the agent's `tool`, with some of its arguments given, or a tool with an
   * `inputSchema` of its own whose calls a client answers within `timeoutMs`. `tool` null without a schema takes the name back.
   */
  DefineToolEvent: {
    name: Schema.String.check(
      Schema.isPattern(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, {
        message: "A tool's name has 1 to 64 letters, digits, _ or - and begins with a letter"
      })
    ),
    description: opt(Schema.String.check(Schema.isMaxLength(4_000))),
    tool: opt(Name),
    arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
    /** A JSON Schema of type object. */
    inputSchema: opt(Schema.Record(Schema.String, Schema.Json)),
    timeoutMs: opt(between(clientToolBounds.minTimeoutMs, clientToolBounds.maxTimeoutMs))
  }
} as const

/** What the bounds of each field alone do not say of pauses. */
export const findRetryFault = ({
  baseMs,
  maxMs
}: {
  readonly baseMs: number
  readonly maxMs: number
}): string | undefined =>
  baseMs > maxMs
    ? `No pause is longer than maxMs, so baseMs (${baseMs}) must not be more than it (${maxMs})`
    : undefined

/** Which model answers from here on. */
export class SetLlmConfigEvent extends Schema.Class<SetLlmConfigEvent>("SetLlmConfigEvent")({
  type: Schema.tag("SetLlmConfigEvent"),
  ...base,
  ...added,
  ...configFields.SetLlmConfigEvent
}) {}

/** How long one model request may take from here on. */
export class SetTimeoutEvent extends Schema.Class<SetTimeoutEvent>("SetTimeoutEvent")({
  type: Schema.tag("SetTimeoutEvent"),
  ...base,
  ...added,
  ...configFields.SetTimeoutEvent
}) {}

/** How a model request that failed is tried again from here on (S004-F01). */
export class SetRetryConfigEvent extends Schema.Class<SetRetryConfigEvent>("SetRetryConfigEvent")({
  type: Schema.tag("SetRetryConfigEvent"),
  ...base,
  ...added,
  ...configFields.SetRetryConfigEvent
}) {}

/** Whether primary and fallback race (S004-F07). */
export class SetRacingEvent extends Schema.Class<SetRacingEvent>("SetRacingEvent")({
  type: Schema.tag("SetRacingEvent"),
  ...base,
  ...added,
  ...configFields.SetRacingEvent
}) {}

/** Who watches what the model is told (S004-F06). */
export class SetGuardEvent extends Schema.Class<SetGuardEvent>("SetGuardEvent")({
  type: Schema.tag("SetGuardEvent"),
  ...base,
  ...added,
  ...configFields.SetGuardEvent
}) {}

/** What the agent remembers of its earlier contexts (S004-F04). */
export class SetMemoryConfigEvent extends Schema.Class<SetMemoryConfigEvent>("SetMemoryConfigEvent")({
  type: Schema.tag("SetMemoryConfigEvent"),
  ...base,
  ...added,
  ...configFields.SetMemoryConfigEvent
}) {}

/** How much of the log the model is shown (S004-F05, F09, F10). */
export class SetReducerEvent extends Schema.Class<SetReducerEvent>("SetReducerEvent")({
  type: Schema.tag("SetReducerEvent"),
  ...base,
  ...added,
  ...configFields.SetReducerEvent,
  /** The agent's definition says it; what somebody sets in the context stands above it. */
  isOfAgent: Schema.optionalKey(Schema.Boolean)
}) {}

/** Another name for a tool with some of its arguments given, or a tool that a client answers (S004-F02). */
export class DefineToolEvent extends Schema.Class<DefineToolEvent>("DefineToolEvent")({
  type: Schema.tag("DefineToolEvent"),
  ...base,
  ...added,
  ...configFields.DefineToolEvent
}) {}

/** What each message is worked through with from here on; `single` is one turn (S004-F03). */
export class DefineWorkflowEvent extends Schema.Class<DefineWorkflowEvent>("DefineWorkflowEvent")({
  type: Schema.tag("DefineWorkflowEvent"),
  ...base,
  ...added,
  flowType: FlowType,
  steps: Schema.Array(FlowStep),
  maxIterations: Schema.NullOr(Schema.Int)
}) {}

/** A workflow as somebody sends it. */
export const workflowInputFields = {
  flowType: FlowType,
  steps: opt(Schema.Array(FlowStepInput).check(Schema.isMaxLength(flowBounds.maxSteps))),
  maxIterations: opt(between(1, flowBounds.maxIterations))
} as const

/** One question was put to several variants of this context, each in a fork of its own (S004-F08). */
export class ComparisonStartedEvent extends Schema.Class<ComparisonStartedEvent>("ComparisonStartedEvent")({
  type: Schema.tag("ComparisonStartedEvent"),
  ...base,
  comparison: Schema.String,
  content: Schema.String,
  variants: Schema.Array(Schema.Struct({ label: Schema.String, context: ContextName, runId: RunId }))
}) {}

export type ConfigEvent =
  | SetLlmConfigEvent
  | SetTimeoutEvent
  | SetRetryConfigEvent
  | SetRacingEvent
  | SetGuardEvent
  | SetMemoryConfigEvent
  | SetReducerEvent
  | DefineToolEvent
  | DefineWorkflowEvent

/**
 * A context's state as it is kept beside its log, so that a long log need not be read again.
 *
 * A snapshot is what the log up to an event folds to, and nothing else: it may be
 * lost, and one that another version of the fold made is not read. Whoever
 * changes what any log folds to gives `foldVersion` the next number.
 */
import { Option, Predicate, Schema } from "effect"
import { ContextEventId, RequestedToolCall, SoftStopReason } from "./context-event.ts"
import { WaitsFor } from "./event-base.ts"

import { FlowStep, FlowType } from "./flow.ts"
import type { Message } from "./message.ts"
import { ModelProvider } from "./model-config.ts"
import { ReducerConfig } from "./prompt-window.ts"
import type { ReducedContext } from "./reduced-context.ts"
import { Usage } from "./run.ts"
import { Speakers } from "./speakers.ts"

/** Of the fold: what the same log meant to an earlier one may be something else. */
export const foldVersion = 10

const roles: ReadonlyArray<unknown> = ["system", "user", "assistant", "tool"]

/** A message was made by the fold and holds only JSON: it is not judged part by part again. */
const KeptMessage = Schema.declare(
  (value): value is Message =>
    Predicate.hasProperty(value, "role") && roles.includes(value.role) && "content" in value
)

const OrNull = Schema.OptionFromNullOr
const Limit = Schema.optionalKey(Schema.NullOr(Schema.Finite))
const Llm = Schema.Struct({
  provider: ModelProvider,
  name: Schema.String,
  temperature: Limit,
  maxOutputTokens: Limit
})

const KeptWorkflow = Schema.Struct({
  flowType: FlowType,
  steps: Schema.Array(FlowStep),
  maxIterations: Schema.NullOr(Schema.Int)
})

const KeptConfig = Schema.Struct({
  primary: OrNull(Llm),
  fallback: OrNull(Llm),
  timeoutMs: OrNull(Schema.Int),
  retry: OrNull(
    Schema.Struct({ maxRetries: Schema.Int, baseMs: Schema.Int, maxMs: Schema.Int, factor: Schema.Finite })
  ),
  isRacing: Schema.Boolean,
  guard: OrNull(
    Schema.Struct({
      provider: ModelProvider,
      name: Schema.String,
      instructions: Schema.NullOr(Schema.String)
    })
  ),
  memory: OrNull(Schema.Struct({ recallPassages: Schema.Int, keepsSummary: Schema.Boolean })),
  reducer: OrNull(ReducerConfig),
  agentReducer: OrNull(ReducerConfig),
  tools: Schema.Array(
    Schema.Union([
      Schema.Struct({
        name: Schema.String,
        description: Schema.optionalKey(Schema.NullOr(Schema.String)),
        tool: Schema.String,
        arguments: Schema.Record(Schema.String, Schema.Unknown)
      }),
      Schema.Struct({
        name: Schema.String,
        description: Schema.optionalKey(Schema.NullOr(Schema.String)),
        inputSchema: Schema.Record(Schema.String, Schema.Json),
        timeoutMs: Schema.Int
      })
    ])
  ),
  workflow: OrNull(KeptWorkflow)
})

const KeptRun = Schema.Struct({
  id: Schema.String,
  steps: Schema.Int,
  stepsBeforeResume: Schema.Int,
  usage: Usage,
  softStop: OrNull(Schema.Struct({ reason: SoftStopReason, at: Schema.String, steps: Schema.Int })),
  pausedFor: OrNull(Schema.Literals(["stepLimit", "timeout", "budget"])),
  unfinished: OrNull(
    Schema.Struct({
      reason: Schema.Literals(["length", "pause", "empty", "contentFilter"]),
      lengths: Schema.Int,
      pauses: Schema.Int,
      empties: Schema.Int,
      isPrompted: Schema.Boolean
    })
  )
})

const KeptRepetition = Schema.Struct({
  lastKey: Schema.String,
  count: Schema.Int,
  recent: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      name: Schema.String,
      key: Schema.String,
      error: Schema.NullOr(Schema.String)
    })
  )
})

const KeptFlow = Schema.Struct({
  step: Schema.String,
  index: Schema.Int,
  iteration: Schema.Int,
  outputs: Schema.Record(Schema.String, Schema.String),
  text: Schema.String,
  isExited: Schema.Boolean
})

const KeptContext = Schema.Struct({
  systemPrompt: OrNull(Schema.String),
  summary: OrNull(Schema.String),
  droppedMessages: Schema.Int,
  windowTokens: Schema.Int,
  spoken: Schema.Struct({ turns: Schema.Int, answers: Schema.Int }),
  judgedMessages: Schema.Int,
  unjudgedInstructions: OrNull(Schema.String),
  notes: Schema.Struct({ content: OrNull(Schema.String), told: Schema.Int, tried: Schema.Int }),
  recalled: Schema.Array(ContextEventId),
  toolsInUse: Schema.Array(Schema.String),
  messages: Schema.Array(KeptMessage),
  heldMessages: Schema.Array(KeptMessage),
  config: KeptConfig,
  nextEventNumber: Schema.Int,
  lastEventId: OrNull(ContextEventId),
  currentTurnNumber: Schema.Int,
  agentTurnStartedAtEventId: OrNull(ContextEventId),
  agentTurnStartedAt: OrNull(Schema.String),
  isTriggered: Schema.Boolean,
  isTurnDue: Schema.Boolean,
  triggeredAt: OrNull(Schema.Struct({ first: Schema.String, last: Schema.String })),
  isInterruptRequested: Schema.Boolean,
  pendingCalls: Schema.Array(RequestedToolCall),
  areCallsAbandoned: Schema.Boolean,
  heldResults: Schema.Record(Schema.String, KeptMessage),
  unsaidCalls: Schema.Array(Schema.String),
  waitingCalls: Schema.Record(Schema.String, WaitsFor),
  repetition: KeptRepetition,
  flow: OrNull(KeptFlow),
  workflow: OrNull(KeptWorkflow),
  asked: Schema.Array(Schema.Struct({ at: Schema.Int, content: Schema.String })),
  speakers: Speakers,
  isAsked: Schema.Boolean,
  isStepDue: Schema.Boolean,
  isAnswered: Schema.Boolean,
  lastText: Schema.String,
  run: KeptRun,
  isSessionOpen: Schema.Boolean
})

/** A state that this cannot keep whole does not compile. */
const Snapshot: Schema.Codec<ReducedContext, typeof KeptContext.Encoded> = KeptContext

/** The state in JSON. */
export const encodeSnapshot = Schema.encodeSync(Snapshot)

/** The state that was kept; none where this version does not understand what was. */
export const decodeSnapshot: (json: unknown) => Option.Option<ReducedContext> =
  Schema.decodeUnknownOption(Snapshot)

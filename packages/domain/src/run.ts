/**
 * A run: the durable record of one trigger of an agent, and its lifecycle.
 *
 * One id lives across pauses, resumes and take-overs. `transitions` is the only
 * place that says which steps are legal; a terminal status never changes. The
 * database's verbs in `server/run` name the same states in their where clauses.
 */
import { Schema } from "effect"
import { GraphEvent } from "./graph.ts"
import { AgentId, GraphEventId, RunId, Timestamp, WebhookId } from "./ids.ts"

export const RunStatus = Schema.Literals([
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "paused",
  "skipped"
])
export type RunStatus = typeof RunStatus.Type

/** Every legal step, by the state that it leaves. */
export const transitions: Readonly<Record<RunStatus, ReadonlyArray<RunStatus>>> = {
  queued: ["running", "cancelled"],
  running: ["completed", "failed", "cancelled", "paused", "running"], // running again = taken over
  paused: ["queued", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
  skipped: []
}

export const isTerminal = (status: RunStatus): boolean => transitions[status].length === 0

/** The states from which a status may be reached. */
export const statesBefore = (status: RunStatus): ReadonlyArray<RunStatus> =>
  RunStatus.literals.filter((before) => transitions[before].includes(status))

/** `stepLimit`: the steps are used up; `budget`: the tokens or the money of the chain are; `killSwitch`: somebody stopped all agents. */
export const PauseReason = Schema.Literals(["stepLimit", "budget", "killSwitch"])
export type PauseReason = typeof PauseReason.Type

/** What woke the agent; templates see it as `event`, `events` and `input`. */
export const Trigger = Schema.Struct({
  type: Schema.Literals(["reaction", "schedule", "manual", "webhook", "context"]),
  input: Schema.optionalKey(Schema.Json),
  /** The instant a schedule was due. */
  dueAt: Schema.optionalKey(Timestamp),
  /** The newest of the missed instants that the run makes up for, beside its own. */
  madeUpUntil: Schema.optionalKey(Timestamp),
  /** The events that the run handles, oldest first. */
  /** What a webhook was given: its id, and the sender's own for the delivery. */
  delivery: Schema.optionalKey(Schema.Struct({ webhookId: WebhookId, id: Schema.String })),
  events: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        id: GraphEventId,
        type: Schema.String,
        /** Of which kind the thing is whose id stands in `objectId`; absent is an object. */
        entityType: Schema.optionalKey(GraphEvent.fields.entityType),
        objectId: Schema.String,
        objectType: Schema.String,
        version: Schema.Int
      })
    )
  )
})
export type Trigger = typeof Trigger.Type

/** Tokens of the model requests of a run, a step or an agent. */
export const Usage = Schema.Struct({ inputTokens: Schema.Int, outputTokens: Schema.Int })
export type Usage = typeof Usage.Type

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens
})

export const Run = Schema.Struct({
  id: RunId,
  agentId: AgentId,
  agentName: Schema.String,
  agentVersion: Schema.Int,
  status: RunStatus,
  pauseReason: Schema.NullOr(PauseReason),
  trigger: Trigger,
  summary: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  stepCount: Schema.Int,
  attempt: Schema.Int,
  usage: Usage,
  model: Schema.NullOr(Schema.String),
  rootEventId: Schema.NullOr(GraphEventId),
  depth: Schema.Int,
  contextName: Schema.String,
  createdAt: Timestamp,
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp),
  durationMs: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "Run" })
export type Run = typeof Run.Type

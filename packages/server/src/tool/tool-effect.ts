/**
 * What a tool call came to, before it is on record.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import type { WaitsFor } from "@tropism/domain/event-base"
import type { PromotionId } from "@tropism/domain/ids"
import type { Evidence } from "@tropism/domain/task"
import type { TaintSource } from "@tropism/domain/taint"
import { Schema } from "effect"

/** What the gate decided for a change; null for a tool that changes nothing. */
export type GateDecision = "execute" | "suggest" | "refuse"

/** What a call showed to the model: an object's version, or a relationship's. */
export type Read =
  | Evidence
  | { readonly relationshipId: string; readonly type: string; readonly version: number }

/** What a tool answers, and what it let the model see. */
export interface ToolEffect {
  readonly result: Schema.Json
  readonly decision: GateDecision | null
  readonly reads: ReadonlyArray<Read>
  /** By what the agent was trusted to do it; absent, its mode and its confidence were enough. */
  readonly promotionId?: PromotionId
  /** What of the answer comes from untrusted sources. */
  readonly taint?: ReadonlyArray<TaintSource>
  /** Who brings the outcome later; absent, `result` is the outcome. */
  readonly waitsFor?: WaitsFor
  /** How long a client has to bring it, in milliseconds. */
  readonly answerWithinMs?: number
}

/** A call that came to nothing, with what the model reads of it; what it wrote until then is undone. */
export class ToolFailed extends Schema.TaggedError<ToolFailed>()("ToolFailed", { result: Schema.Json }) {}

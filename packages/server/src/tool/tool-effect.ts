/**
 * What a tool call came to, before it is on record.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import type { Evidence } from "@tropism/domain/task"
import type { Schema } from "effect"

/** What the gate decided for a change; null for a tool that changes nothing. */
export type GateDecision = "execute" | "suggest" | "refuse"

/** What a tool answers, and what it let the model see. */
export interface ToolEffect {
  readonly result: Schema.Json
  readonly decision: GateDecision | null
  readonly reads: ReadonlyArray<Evidence>
  /** Who brings the outcome later; absent, `result` is the outcome. */
  readonly waitsFor?: "run" | "person"
}

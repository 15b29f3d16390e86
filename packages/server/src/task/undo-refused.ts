/**
 * Why an undo was not planned, or not done.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * Nothing was written when one is raised.
 */
import { Schema } from "effect"

export class UndoRefused extends Schema.TaggedError<UndoRefused>()("UndoRefused", {
  /** `notInPlan`: what a person wants to leave out cannot be left out. */
  reason: Schema.Literals(["state", "alreadyDecided", "outdated", "notInPlan"]),
  detail: Schema.String
}) {}

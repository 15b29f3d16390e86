/**
 * What a verification found: whether the records still fold to what they say.
 *
 * The logs are the truth, so everything beside them must follow from them. A
 * difference names the thing, the rule that it breaks and what was seen; none
 * is ever mended in silence. `judgeLog` judges one context (`log-judge.ts`); the
 * graph is judged where its rows are.
 */
import { Schema } from "effect"

export const VerificationRule = Schema.Literals([
  /** The versions of an entity are not 1, 2, 3 … */
  "versions",
  /** The newest version is not what the entity is now. */
  "present",
  /** A version has no event, or one that says something else. */
  "event",
  /** An event names other properties than those that changed. */
  "changedProperties",
  /** An object names another version than its history as the one that set a property. */
  "propertyVersions",
  /** The numbers of a log are not 1, 2, 3 …, or its head says another end. */
  "logNumbers",
  /** An event's parent is not an event before it. */
  "parents",
  /** A turn did not begin before it ended, or another began while it was open. */
  "turns",
  /** A run and its log disagree on its steps, its tokens or its last words. */
  "run",
  /** A recorded tool call and its outcome in the log disagree. */
  "toolCall",
  /** The context's head names another open turn than its log. */
  "openTurn",
  /** The snapshot of a context is not what its log folds to up to there. */
  "snapshot"
])
export type VerificationRule = typeof VerificationRule.Type

export const Difference = Schema.Struct({
  rule: VerificationRule,
  kind: Schema.Literals(["object", "relationship", "context"]),
  /** The id of the entity, or the name of the context. */
  id: Schema.String,
  /** What was found, in a sentence. */
  detail: Schema.String
}).annotate({ identifier: "Difference" })
export type Difference = typeof Difference.Type

export const Verification = Schema.Struct({
  checked: Schema.Struct({
    objects: Schema.Int,
    relationships: Schema.Int,
    versions: Schema.Int,
    contexts: Schema.Int,
    contextEvents: Schema.Int,
    runs: Schema.Int
  }),
  /** All that were found; the first of them are told. */
  differenceCount: Schema.Int,
  differences: Schema.Array(Difference)
}).annotate({ identifier: "Verification" })
export type Verification = typeof Verification.Type

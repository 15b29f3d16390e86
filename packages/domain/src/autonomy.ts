/**
 * Trust that an agent earns: what people said of its suggestions, and what it may do for that without asking.
 *
 * Everything is counted for one version of an agent, one type and one
 * operation. A promotion stands for the confidence of a hybrid agent and for
 * nothing else; it ends when a change of its kind is reverted or when a person
 * takes it back, and from then on the reviews count anew.
 */
import { Schema } from "effect"
import { ChangeKind, type HybridPolicy } from "./capability.ts"
import { AgentId, PromotionId, TaskId, Timestamp, UserId } from "./ids.ts"

/** What became of a suggestion that counts: as it was, with a person's own properties, not at all, or nobody decided in time. */
export const Verdict = Schema.Literals(["accepted", "edited", "rejected", "expired"])
export type Verdict = typeof Verdict.Type

/** What people said; what expired was reviewed by nobody. */
export interface Reviews {
  readonly accepted: number
  readonly edited: number
  readonly rejected: number
}

export const reviewsIn = ({ accepted, edited, rejected }: Reviews): number => accepted + edited + rejected

/** The share of the reviews that took the suggestion as it was; null where there are none. */
export const acceptanceRate = (reviews: Reviews): number | null =>
  reviewsIn(reviews) === 0 ? null : reviews.accepted / reviewsIn(reviews)

/**
 * Whether these reviews are enough for the agent to act without asking.
 *
 * **Details** The order of the reviews does not matter, so the last of them may be a rejection.
 */
export const earnsTrust = (policy: HybridPolicy | null, reviews: Reviews): boolean => {
  const promotion = policy?.promotion ?? null
  const rate = acceptanceRate(reviews)
  return (
    promotion !== null &&
    rate !== null &&
    reviewsIn(reviews) >= promotion.minReviews &&
    rate >= promotion.minRate
  )
}

/** For what is counted and promoted: one version's work of one kind. */
const kind = {
  agentId: AgentId,
  agentVersion: Schema.Int,
  operation: ChangeKind,
  /** The type of the object, or of the relationship. */
  objectType: Schema.String
}

const Rate = Schema.NullOr(Schema.Finite)

/** What became of an agent version's suggestions of one kind. */
export const ReviewRecord = Schema.Struct({
  ...kind,
  accepted: Schema.Int,
  edited: Schema.Int,
  rejected: Schema.Int,
  expired: Schema.Int,
  /** Changes that were made, by itself or approved, and undone by a person. */
  reverted: Schema.Int,
  /** Of all reviews; null where there are none. */
  acceptanceRate: Rate,
  /** What a promotion is decided by: the reviews since the last revert or reversal. */
  counting: Schema.Struct({ reviews: Schema.Int, acceptanceRate: Rate }),
  /** The promotion that stands. */
  promotionId: Schema.NullOr(PromotionId)
}).annotate({ identifier: "ReviewRecord" })
export type ReviewRecord = typeof ReviewRecord.Type

export const EndReason = Schema.Literals(["reverted", "reversed"])
export type EndReason = typeof EndReason.Type

/** An agent version need not ask for changes of one kind, from the moment on when its reviews were enough. */
export const Promotion = Schema.Struct({
  id: PromotionId,
  ...kind,
  /** The reviews by which it was earned. */
  reviews: Schema.Int,
  acceptanceRate: Schema.Finite,
  /** The task that told people of it. */
  taskId: TaskId,
  promotedAt: Timestamp,
  /** Null while it stands. */
  endedAt: Schema.NullOr(Timestamp),
  /** `reverted`: a change of its kind was undone. `reversed`: a person took it back. */
  endReason: Schema.NullOr(EndReason),
  endedBy: Schema.NullOr(UserId),
  note: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Promotion" })
export type Promotion = typeof Promotion.Type

/** What one version of an agent has earned. */
export const Autonomy = Schema.Struct({
  agentId: AgentId,
  agentVersion: Schema.Int,
  /** Why promotions have no effect at present; null when they have. */
  withoutEffect: Schema.NullOr(Schema.String),
  /** What was decided last comes first. */
  records: Schema.Array(ReviewRecord),
  /** The newest first, also those that ended. */
  promotions: Schema.Array(Promotion),
  /** Whether there are more records or promotions than these. */
  truncated: Schema.Boolean
}).annotate({ identifier: "Autonomy" })
export type Autonomy = typeof Autonomy.Type

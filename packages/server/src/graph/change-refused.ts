/**
 * The error for a refused change: a reason for programs and a sentence for people and models.
 *
 * **Invariant** A refused change has written nothing.
 */
import { Effect, Schema } from "effect"

export const RefusalReason = Schema.Literals([
  "notFound",
  "version",
  "keyTaken",
  "relationshipExists",
  "invalid",
  "notPermitted",
  /** The run has read untrusted content. */
  "untrusted",
  "agentDisabled",
  "tooManySuggestions",
  "rejectedBefore",
  "state",
  "backtest"
])

export class ChangeRefused extends Schema.TaggedError<ChangeRefused>()("ChangeRefused", {
  reason: RefusalReason,
  detail: Schema.String,
  /** JSON pointer to the fault in the change, when there is one place. */
  pointer: Schema.optionalKey(Schema.String),
  /** Id of the entity that already has the key, or that already connects the two ends. */
  existingId: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.detail
  }
}

export const refused = (reason: typeof RefusalReason.Type, detail: string, pointer?: string): ChangeRefused =>
  new ChangeRefused({ reason, detail, ...(pointer === undefined ? {} : { pointer }) })

/** Another object has the key. */
export const keyTaken = (type: string, key: string | null, existingId: string | undefined): ChangeRefused =>
  taken("keyTaken", `There is already a ${type} with the key ${key}`, existingId, "/key")

/** The two objects already have this relationship. */
export const relationshipExists = (
  { fromId, toId, type }: { readonly fromId: string; readonly toId: string; readonly type: string },
  existingId: string | undefined
): ChangeRefused =>
  taken("relationshipExists", `There is already a ${type} from ${fromId} to ${toId}`, existingId)

/** Leaves the id out when the holder was deleted in the meantime. */
const taken = (
  reason: typeof RefusalReason.Type,
  sentence: string,
  existingId: string | undefined,
  pointer?: string
): ChangeRefused =>
  new ChangeRefused({
    reason,
    detail: existingId === undefined ? sentence : `${sentence}: it has the id ${existingId}`,
    ...(pointer === undefined ? {} : { pointer }),
    ...(existingId === undefined ? {} : { existingId })
  })

/** Refuses a relationship from an object to itself. */
export const expectTwoEnds = ({
  fromId,
  toId
}: {
  readonly fromId: string
  readonly toId: string
}): Effect.Effect<void, ChangeRefused> =>
  fromId === toId
    ? Effect.fail(refused("invalid", "An object is not related to itself", "/toId"))
    : Effect.void

export const noObject = (id: string): ChangeRefused =>
  refused("notFound", `There is no object ${id}`, "/objectId")

export const noRelationship = (id: string): ChangeRefused =>
  refused("notFound", `There is no relationship ${id}`, "/relationshipId")

/** The entity is not at the version that the caller expects. */
export const wrongVersion = (what: string, expected: number | undefined, current: number): ChangeRefused =>
  refused(
    "version",
    `The ${what} is at version ${current}, not ${expected}: read it again`,
    "/expectedVersion"
  )

export const expectVersion = (
  what: string,
  expected: number | undefined,
  current: number
): Effect.Effect<void, ChangeRefused> =>
  expected === undefined || expected === current
    ? Effect.void
    : Effect.fail(wrongVersion(what, expected, current))

/** The entity cannot be restored: it was purged, is not deleted, or never existed. */
export const notDeleted = (what: string, id: string, pointer: string): ChangeRefused =>
  refused("notFound", `There is no deleted ${what} ${id}`, pointer)

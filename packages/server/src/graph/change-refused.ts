/**
 * Why a change was not made.
 *
 * Every refusal has a reason for programs and a sentence for people and models;
 * nothing was written when one is raised.
 */
import { Effect, Schema } from "effect"

export const RefusalReason = Schema.Literals([
  "notFound",
  "version",
  "keyTaken",
  "relationshipExists",
  "invalid",
  "notPermitted",
  /** The run has read something untrusted. */
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
  /** Where in the change the fault lies, when it lies in one place. */
  pointer: Schema.optionalKey(Schema.String),
  /** Who has the key, or the place between two ends, that the change wants. */
  existingId: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.detail
  }
}

export const refused = (reason: typeof RefusalReason.Type, detail: string, pointer?: string): ChangeRefused =>
  new ChangeRefused({ reason, detail, ...(pointer === undefined ? {} : { pointer }) })

/** The key is another object's. */
export const keyTaken = (type: string, key: string | null, existingId: string | undefined): ChangeRefused =>
  taken("keyTaken", `There is already a ${type} with the key ${key}`, existingId, "/key")

/** The two objects are connected in this way already. */
export const relationshipExists = (
  { fromId, toId, type }: { readonly fromId: string; readonly toId: string; readonly type: string },
  existingId: string | undefined
): ChangeRefused =>
  taken("relationshipExists", `There is already a ${type} from ${fromId} to ${toId}`, existingId)

/** Whoever has it may have gone in the meantime; then nobody is named. */
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

/** There must be two objects: one is not related to itself. */
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

/** The caller knows another version than the one that is there. */
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

/** There is nothing to restore: it was purged, is there, or never was. */
export const notDeleted = (what: string, id: string, pointer: string): ChangeRefused =>
  refused("notFound", `There is no deleted ${what} ${id}`, pointer)

/**
 * Which properties come from a source that nobody here vouches for.
 *
 * A mark is a property's name in its object's or relationship's `untrusted`. It
 * comes and goes with what is written: whoever writes a property says whether its
 * new value is to be trusted. A write that leaves some of the old value standing
 * leaves the mark standing too, so a merge into an untrusted object vouches for nothing.
 */
import { Result, Schema } from "effect"
import { byCodePoint } from "./code-points.ts"
import {
  canonicalJson,
  type JsonFault,
  jsonBounds,
  mergePatch,
  pointerStep,
  type Properties
} from "./json.ts"

/** The names of properties whose values are untrusted, by code point. */
export const Untrusted = Schema.Array(Schema.String)
export type Untrusted = typeof Untrusted.Type

/** What a writer says of its values: true for all that it writes, or some of them by name. */
export const UntrustedWords = Schema.Union([
  Schema.Boolean,
  Schema.Array(Schema.String).check(Schema.isMaxLength(jsonBounds.maxKeys))
]).annotate({
  description:
    "Which of the properties written here come from an untrusted source: true for all, or their names. A property that is written without it is trusted again"
})
export type UntrustedWords = typeof UntrustedWords.Type

/** The names that a writer's words stand for, or why they stand for none. */
export const untrustedNames = (
  words: UntrustedWords | null | undefined,
  written: Properties
): Result.Result<Untrusted, JsonFault> => {
  if (typeof words === "boolean" || words === null || words === undefined)
    return Result.succeed(words === true ? Object.keys(written).toSorted(byCodePoint) : [])
  const unknown = words.findIndex((name) => !Object.hasOwn(written, name))
  return unknown === -1
    ? Result.succeed([...new Set(words)].toSorted(byCodePoint))
    : Result.fail({
        pointer: `/untrusted${pointerStep(unknown)}`,
        message: `Only what is written here can be marked as untrusted, and ${JSON.stringify(words[unknown])} is not among the properties`
      })
}

/**
 * The marks after a merge patch.
 *
 * **Details** `untrusted` names what of the patch is untrusted; `after` is what the patch made of the properties. The database
 * says the same in `kb.marks_after`.
 */
export const marksAfter = (
  marked: Untrusted,
  patch: Properties,
  after: Properties,
  untrusted: Untrusted
): Untrusted => {
  const isLeft = (name: string): boolean =>
    !Object.hasOwn(patch, name) ||
    canonicalJson(mergePatch(null, patch[name] ?? null)) !== canonicalJson(after[name])
  return [...new Set([...untrusted, ...marked.filter(isLeft)])]
    .filter((name) => Object.hasOwn(after, name))
    .toSorted(byCodePoint)
}

/** What an answer says of an entity that has marks; nothing of one that has none. */
export const markedPart = (untrusted: Untrusted): { readonly untrusted?: Untrusted } =>
  untrusted.length === 0 ? {} : { untrusted }

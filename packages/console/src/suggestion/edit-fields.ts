/**
 * The properties of a change as fields that a person edits, and what they say afterwards.
 *
 * A text stays a text whatever is typed, so that "007" does not become a number;
 * everything else is JSON. Pure.
 */
import type { Change } from "@tropism/domain/change"
import type { Properties } from "@tropism/domain/json"
import { Result, Schema } from "effect"

export interface EditField {
  readonly name: string
  /** `removal`: the change takes the property away, which can be left out and not edited. */
  readonly kind: "text" | "json" | "removal"
  readonly text: string
  /** Whether it goes into what is approved. */
  readonly isTaken: boolean
}

/** The fields of a change; undefined when it has no properties to edit. */
export const editFields = (change: Change): ReadonlyArray<EditField> | undefined =>
  "data" in change
    ? Object.entries(change.data).map(([name, value]): EditField => {
        const isRemoval = value === null && (change.type === "update" || change.type === "updateRelationship")
        if (isRemoval) return { name, kind: "removal", text: "", isTaken: true }
        return typeof value === "string"
          ? { name, kind: "text", text: value, isTaken: true }
          : { name, kind: "json", text: JSON.stringify(value, null, 2), isTaken: true }
      })
    : undefined

/** The fields of an edit after its suggestion was refined: what the person changed stays, all else says what is suggested now. */
export const refinedFields = (
  mine: ReadonlyArray<EditField>,
  before: ReadonlyArray<EditField>,
  now: ReadonlyArray<EditField>
): ReadonlyArray<EditField> => {
  const changed = differentFields(before, mine)
  const isSuggested = ({ name }: EditField): boolean => now.some((field) => field.name === name)
  return [
    ...now.map((field) => changed.find(({ name }) => name === field.name) ?? field),
    ...changed.filter((field) => !isSuggested(field))
  ]
}

/** Those of the later fields that are not as they were before. */
export const differentFields = (
  before: ReadonlyArray<EditField>,
  after: ReadonlyArray<EditField>
): ReadonlyArray<EditField> =>
  after.filter(
    ({ isTaken, kind, name, text }) =>
      !before.some(
        (old) => old.name === name && old.kind === kind && old.text === text && old.isTaken === isTaken
      )
  )

export interface EditedFields {
  readonly data: Properties
  /** The names of the fields that hold no JSON. */
  readonly faults: ReadonlyArray<string>
}

const parsed = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** What fields say. A property that is left out is not written. */
export const editedFields = (fields: ReadonlyArray<EditField>): EditedFields => {
  const faults: Array<string> = []
  const entries = fields.flatMap(
    ({ isTaken, kind, name, text }): ReadonlyArray<readonly [string, Schema.Json]> => {
      if (!isTaken) return []
      if (kind === "removal") return [[name, null]]
      if (kind === "text") return [[name, text]]
      const value = parsed(text)
      if (Result.isSuccess(value)) return [[name, value.success]]
      faults.push(name)
      return []
    }
  )
  return { data: Object.fromEntries(entries), faults }
}

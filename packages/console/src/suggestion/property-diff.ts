/**
 * What a change would do to properties, row by row: old, new, and what kind of difference it is.
 *
 * An update is a JSON merge patch, so its rows come from applying it as the
 * server will, with the domain's own `mergePatch`. Pure; it renders nothing.
 */
import type { Change } from "@tropism/domain/change"
import { canonicalJson, isJsonObject, mergePatch, type Properties } from "@tropism/domain/json"
import type { SuggestionTask } from "@tropism/domain/task"
import type { Schema } from "effect"
import { limits } from "../limits.ts"

/** `kept`: the change names the property and leaves it as it is. */
export type RowKind = "added" | "changed" | "removed" | "kept"

export interface PropertyRow {
  /** The way to the property from the top: one name, or several where objects are nested. */
  readonly path: ReadonlyArray<string>
  readonly kind: RowKind
  readonly before?: Schema.Json
  readonly after?: Schema.Json
}

/** The rows of a suggestion against its target as it is now. */
export const suggestionRows = (
  task: Pick<SuggestionTask, "payload" | "target">
): ReadonlyArray<PropertyRow> => changeRows(task.payload.suggestedChanges, task.target?.properties ?? {})

/** The rows of a change of an object that has these properties now. */
export const changeRows = (change: Change, current: Properties): ReadonlyArray<PropertyRow> => {
  switch (change.type) {
    case "create":
    case "createRelationship":
      return Object.entries(change.data).map(([key, after]) => ({ path: [key], kind: "added", after }))
    case "delete":
      return Object.entries(current).map(([key, before]) => ({ path: [key], kind: "removed", before }))
    case "update":
      return patchRows(current, change.data, [])
    // The relationship as it is now is not known here; what is asked for is.
    case "updateRelationship":
      return requestedRows(change)
    case "deleteRelationship":
      return []
  }
}

/** What a change asked for, for when its target has moved on; what it would have removed has no old value here. */
export const requestedRows = (change: Change): ReadonlyArray<PropertyRow> =>
  "data" in change
    ? Object.entries(change.data).map(([key, after]) =>
        after === null && (change.type === "update" || change.type === "updateRelationship")
          ? { path: [key], kind: "removed" }
          : { path: [key], kind: "added", after }
      )
    : []

/** A property by its name, which may be that of something that every JavaScript object has. */
export const propertyOf = (properties: Properties, name: string): Schema.Json | undefined =>
  Object.hasOwn(properties, name) ? properties[name] : undefined

const patchRows = (
  current: Properties,
  patch: Properties,
  path: ReadonlyArray<string>
): ReadonlyArray<PropertyRow> =>
  Object.entries(patch).flatMap(([key, value]) => {
    const here = [...path, key]
    const before = propertyOf(current, key)
    const goesDeeper = isJsonObject(value) && isJsonObject(before) && here.length < limits.maxDiffDepth
    return goesDeeper ? patchRows(before, value, here) : [patchRow(here, before, value)]
  })

/** In a merge patch null means removal; a JSON null can stand in the old state but never in the new one. */
const patchRow = (
  path: ReadonlyArray<string>,
  before: Schema.Json | undefined,
  value: Schema.Json
): PropertyRow => {
  if (value === null) return before === undefined ? { path, kind: "kept" } : { path, kind: "removed", before }
  const after = mergePatch(before ?? null, value)
  if (before === undefined) return { path, kind: "added", after }
  return canonicalJson(before) === canonicalJson(after)
    ? { path, kind: "kept", before, after }
    : { path, kind: "changed", before, after }
}

/**
 * A value as text: strings as they are, everything else as JSON.
 *
 * **Gotchas** A string that could be read as another JSON value keeps its
 * quotes: the text "true" and the value true must not look alike.
 */
export const valueText = (value: Schema.Json): string => {
  if (typeof value === "string") {
    return value === "" || looksLikeJson.test(value) ? JSON.stringify(value) : value
  }
  const line = JSON.stringify(value)
  return line.length <= 60 || typeof value !== "object" ? line : JSON.stringify(value, null, 2)
}

const looksLikeJson = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|[[{"].*)$/s

/** The value at the end of a path, or undefined when it leads nowhere. */
export const valueAt = (value: Schema.Json, path: ReadonlyArray<string>): Schema.Json | undefined => {
  const [key, ...rest] = path
  if (key === undefined) return value
  const next = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return next === undefined ? undefined : valueAt(next, rest)
}

/** Which properties differ between two versions; those that are the same are left out. */
export const versionDifferences = (
  before: Properties,
  after: Properties
): ReadonlyArray<{ readonly name: string; readonly before?: Schema.Json; readonly after?: Schema.Json }> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [old, young] = [propertyOf(before, name), propertyOf(after, name)]
    if (old !== undefined && young !== undefined && canonicalJson(old) === canonicalJson(young)) return []
    return [{ name, ...(old !== undefined && { before: old }), ...(young !== undefined && { after: young }) }]
  })

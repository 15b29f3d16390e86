/**
 * What a suggestion would do, or an agent wants to know, in words short enough for a line.
 */
import {
  isPromotion,
  isSuggestion,
  isTodo,
  isUndo,
  type SuggestionTask,
  type Task,
  type UndoTask
} from "@tropism/domain/task"
import { canonicalJson } from "@tropism/domain/json"
import type { Schema } from "effect"
import { cutEnd, printable } from "./terminal/text.ts"

/** What a task is about: the object's type and key, the ends of a relationship, or what kind of task it is. */
export const taskSubject = (task: Task): string => (isSuggestion(task) ? subject(task) : task.type)

const subject = (task: SuggestionTask): string => {
  const change = task.payload.suggestedChanges
  switch (change.type) {
    case "create":
      return `${change.objectType} ${change.key ?? "(new)"}`
    case "createRelationship":
      return `${change.relationship.type} ${shortId(change.relationship.fromId)} → ${shortId(change.relationship.toId)}`
    case "updateRelationship":
    case "deleteRelationship":
      return `relationship ${shortId(change.relationshipId)}`
    case "update":
    case "delete":
      return task.target
        ? `${task.target.type} ${task.target.key ?? shortId(task.target.id)}`
        : `object ${shortId(change.objectId)}`
  }
}

/** One line for each property that would change, old → new; of a question its words and the answers to choose from. */
export const taskLines = (task: Task): ReadonlyArray<string> => {
  if (isSuggestion(task)) return changeLines(task)
  if (isTodo(task) || isPromotion(task)) return [task.title]
  if (isUndo(task)) return [task.title, undoCounts(task)]
  const { options, question } = task.payload
  return [question, ...(options === undefined ? [] : [`(${options.join(" | ")})`])]
}

/** How much an undo would do, and how much it would leave. */
export const undoCounts = ({ payload: { counts } }: UndoTask): string =>
  [
    `${counts.ready} to undo`,
    ...(counts.conflicts === 0 ? [] : [`${counts.conflicts} skipped: changed since`]),
    ...(counts.unneeded === 0 ? [] : [`${counts.unneeded} already undone`]),
    ...(counts.suggestions === 0
      ? []
      : [`${counts.suggestions} ${counts.suggestions === 1 ? "suggestion" : "suggestions"} to drop`])
  ].join(", ")

const changeLines = (task: SuggestionTask): ReadonlyArray<string> => {
  const change = task.payload.suggestedChanges
  if (change.type === "delete") return ["delete the object"]
  if (change.type === "deleteRelationship") return ["delete the relationship"]
  const before = change.type === "update" ? (task.target?.properties ?? {}) : {}
  const lines = Object.entries(change.data).map(([name, value]) => {
    const old = before[name]
    if (value === null) return `${name}: ${valueText(old)} → removed`
    return old === undefined
      ? `${name}: ${valueText(value)}`
      : `${name}: ${valueText(old)} → ${valueText(value)}`
  })
  if (lines.length > 0) return lines
  return [
    change.type === "create"
      ? "create the object"
      : change.type === "update"
        ? "no property changes"
        : change.type === "updateRelationship"
          ? "no property changes"
          : "create the relationship"
  ]
}

const longestValue = 60

export const valueText = (value: Schema.Json | undefined): string =>
  value === undefined
    ? "nothing"
    : cutEnd(printable(typeof value === "string" ? `"${value}"` : canonicalJson(value)), longestValue)

/** The part of an id that tells it from its neighbours: a UUIDv7 begins with the time. */
export const shortId = (id: string): string => id.slice(-12)

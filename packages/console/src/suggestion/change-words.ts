/**
 * What kinds of change are called on the page, and what a decision did, as sentences.
 *
 * The texts are plain: characters from the graph are made visible where they
 * are put into one.
 */
import type { Change } from "@tropism/domain/change"
import type { SuggestionTask, SuggestionType } from "@tropism/domain/task"
import { visibleText } from "../words/visible-text.ts"

/** How a group is headed: "licence-review suggests updates". */
export const kindWords: Readonly<Record<SuggestionType, string>> = {
  object_create_suggestion: "new objects",
  object_update_suggestion: "updates",
  object_delete_suggestion: "deletions",
  relationship_create_suggestion: "new relationships",
  relationship_update_suggestion: "updates of relationships",
  relationship_delete_suggestion: "relationship removals"
}

/** What one suggestion does, said beside its mark. */
export const changeVerbs: Readonly<Record<Change["type"], string>> = {
  create: "Create",
  update: "Update",
  delete: "Delete",
  createRelationship: "Connect",
  updateRelationship: "Update",
  deleteRelationship: "Disconnect"
}

/** The object a suggestion is about, by what people call it; undefined when only an id is known. */
export const subjectOf = (
  task: Pick<SuggestionTask, "payload" | "target">
): { readonly type: string; readonly key: string | null } | undefined => {
  const change = task.payload.suggestedChanges
  if (change.type === "create") return { type: change.objectType, key: change.key }
  return task.target === null ? undefined : { type: task.target.type, key: task.target.key }
}

const subjectText = (task: SuggestionTask): string => {
  const subject = subjectOf(task)
  return subject
    ? visibleText(`${subject.type}${subject.key === null ? "" : ` ${subject.key}`}`)
    : "The object"
}

/** What approving did to the graph, from what the server says about it. */
export const approvalSentence = (task: SuggestionTask): string => {
  const note = task.resolutionNote === null ? "" : ` ${visibleText(task.resolutionNote)}`
  return `${outcomeSentence(task)}${note}`
}

const outcomeSentence = (task: SuggestionTask): string => {
  const { outcome } = task
  const isRelationship = task.type.startsWith("relationship")
  if (outcome === null) return "Change approved."
  if (outcome.change === "unchanged") return "No change needed: the graph already matched."
  if (isRelationship && outcome.change === "updated")
    return `The relationship is now version ${outcome.version}.`
  if (isRelationship) return outcome.change === "deleted" ? "Relationship removed." : "Relationship created."
  if (outcome.change === "created") return `${subjectText(task)} is created.`
  if (outcome.change === "deleted") return `${subjectText(task)} is deleted; its history is kept.`
  return `${subjectText(task)} is now version ${outcome.version}.`
}

export const rejectionSentence = (reason: string): string =>
  reason === ""
    ? "The graph is unchanged."
    : "The graph is unchanged. Your reason is saved with the suggestion."

/** A confidence as people say it: 0.8 is 80%. */
export const confidenceText = (confidence: number): string =>
  `${Math.round(Math.min(1, Math.max(0, confidence)) * 100)}%`

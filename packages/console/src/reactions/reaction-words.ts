/**
 * How an agent keeps up, and what became of what was meant for it, in sentences.
 *
 * Pure. What agents and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import { countedMaxEntries, type ReactionQueue } from "@tropism/api/processing-api"
import type { BatchTriggered, EntryStatus, PendingEvent, ProcessingEntry } from "@tropism/domain/processing"
import { countText } from "../words/amounts.ts"

/** A number that is counted no further than the server counts. */
export const countedText = (count: number): string =>
  count >= countedMaxEntries
    ? `${countedMaxEntries.toLocaleString("en")} or more`
    : count.toLocaleString("en")

/** The one thing to know about an agent's queue; what waits for a person comes first. */
export const queueText = (queue: ReactionQueue): string => {
  if (!queue.enabled) return queue.disabledReason ?? "Disabled: events do not trigger it."
  if (queue.deadLetters > 0)
    return `${countedText(queue.deadLetters)} ${queue.deadLetters === 1 ? "dead letter" : "dead letters"} to review`
  if (queue.waiting > 0) return "Catching up"
  if (queue.working > 0) return "Running"
  return queue.newest === null ? "No events yet" : "Up to date"
}

/** `Person, Note`, or that it listens to all. */
export const listensToText = ({ objectTypes }: Pick<ReactionQueue, "objectTypes">): string =>
  objectTypes.length === 0 ? "All types" : objectTypes.join(", ")

const statusWords: Readonly<Record<EntryStatus, string>> = {
  pending: "waiting",
  processing: "running",
  completed: "completed",
  failed: "failed",
  abandoned: "abandoned",
  skipped: "skipped"
}

export const entryStatusWord = (status: EntryStatus): string => statusWords[status]

export const entryStatusChoices = Object.entries(statusWords).map(([value, label]) => ({ value, label }))

const things: Readonly<Record<ProcessingEntry["entityType"], string>> = {
  graphObject: "Object",
  relationship: "Relationship",
  mcpEvent: "External event"
}

/** `created, version 1` of an object that is named beside it, else `Relationship deleted, version 4`. */
export const subjectText = ({
  entityType,
  eventType,
  objectVersion,
  subject
}: Pick<ProcessingEntry, "entityType" | "eventType" | "objectVersion" | "subject">): string => {
  if (entityType === "mcpEvent") return things.mcpEvent
  const happened = `${eventType}, version ${objectVersion}`
  return subject === null ? `${things[entityType]} ${happened}` : happened
}

/** Why an entry is as it is; undefined when it was simply handled. */
export const entryReason = ({
  errorMessage,
  reason
}: Pick<ProcessingEntry, "errorMessage" | "reason">): string | undefined =>
  errorMessage ?? reason ?? undefined

const whys: Readonly<Record<PendingEvent["why"], string>> = {
  skipped: "skipped",
  failed: "failed",
  abandoned: "abandoned",
  refused: "refused",
  notEnabled: "agent was disabled",
  notConcerned: "did not match its trigger"
}

export const whyWord = (why: PendingEvent["why"]): string => whys[why]

/** What a batch came to: how many will run, and why the others will not. */
export const batchText = ({ queued, skipped }: BatchTriggered): string =>
  [
    `${countText(queued.length, "run")} will start.`,
    ...(skipped.length === 0
      ? []
      : [`${skipped.length} will not: ${[...new Set(skipped.map(({ reason }) => reason))].join(" ")}`])
  ].join(" ")

/** What trying dead letters again came to. */
export const redrivenText = ({
  redriven,
  skipped
}: {
  readonly redriven: ReadonlyArray<unknown>
  readonly skipped: ReadonlyArray<{ readonly reason: string }>
}): string =>
  [
    `${countText(redriven.length, "dead letter")} ${redriven.length === 1 ? "has" : "have"} a new attempt.`,
    ...new Set(skipped.map(({ reason }) => reason))
  ].join(" ")

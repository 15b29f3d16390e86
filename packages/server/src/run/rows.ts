/**
 * A run's row as the database gives it, turned into the domain's words.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 */
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { Run } from "@tropism/domain/run"

export interface RunRow extends Omit<Run, "createdAt" | "startedAt" | "completedAt" | "durationMs"> {
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
}

/** Duration is wall-clock time from the first claim to the end. */
export const toRun = (row: RunRow): Run => ({
  id: row.id,
  agentId: row.agentId,
  agentName: row.agentName,
  agentVersion: row.agentVersion,
  status: row.status,
  pauseReason: row.pauseReason,
  trigger: row.trigger,
  summary: row.summary,
  errorMessage: row.errorMessage,
  stepCount: row.stepCount,
  attempt: row.attempt,
  usage: row.usage,
  model: row.model,
  rootEventId: row.rootEventId,
  depth: row.depth,
  contextName: row.contextName,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  durationMs: row.startedAt && row.completedAt ? row.completedAt.getTime() - row.startedAt.getTime() : null
})

export interface EntryRow extends Omit<
  ProcessingEntry,
  "dueAt" | "deadLetteredAt" | "startedAt" | "completedAt" | "createdAt"
> {
  readonly dueAt: Date | null
  readonly deadLetteredAt: Date | null
  readonly startedAt: Date | null
  readonly completedAt: Date | null
  readonly createdAt: Date
}

export const toEntry = (row: EntryRow): ProcessingEntry => ({
  id: row.id,
  agentId: row.agentId,
  entityType: row.entityType,
  graphObjectId: row.graphObjectId,
  objectVersion: row.objectVersion,
  eventType: row.eventType,
  eventId: row.eventId,
  attempt: row.attempt,
  status: row.status,
  runId: row.runId,
  reason: row.reason,
  dueAt: row.dueAt?.toISOString() ?? null,
  deadLetteredAt: row.deadLetteredAt?.toISOString() ?? null,
  errorMessage: row.errorMessage,
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})

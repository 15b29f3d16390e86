/**
 * A run's row as the database gives it, turned into the domain's words.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 */
import { findMissing } from "@tropism/domain/agent-warning"
import { findToolsTool } from "@tropism/domain/tools-in-use"
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { Budget } from "@tropism/domain/budget"
import { microsPerDollar } from "@tropism/domain/chain"
import type { LimitOverrides, Run, Usage } from "@tropism/domain/run"
import { limitsOf } from "@tropism/domain/run-limits"
import type { SqlClient, Statement } from "effect/sql"
import { objectNamed } from "../graph/object-names.ts"
import { toldSummary } from "./sentences.ts"

export interface RunRow extends Omit<
  Run,
  | "createdAt"
  | "startedAt"
  | "completedAt"
  | "durationMs"
  | "taintedBy"
  | "missingTools"
  | "costUsd"
  | "total"
  | "limits"
  | "isSummaryTruncated"
  | "waitingFor"
> {
  /** What a queued run was told last of a provider that is away; null where it waits for none. */
  readonly waitMessage: string | null
  readonly waitSince: Date | null
  readonly nextTryAt: Date | null
  /** Of the whole summary, of which the row may have the beginning. */
  readonly summaryChars: number | null
  readonly costMicros: bigint
  /** What the run and all below it have used; null before the first of them did. */
  readonly spentUsage: Usage | null
  readonly spentMicros: bigint | null
  /** What was set for this run, and what its agent's version says. */
  readonly limits: LimitOverrides | null
  readonly maxSteps: number | null
  readonly defaultTimeoutMs: number | null
  readonly budget: Budget | null
  readonly taintedBy: Run["taintedBy"] | null
  /** Foreign tools that its agent's version names, and the names of all tools that its model was shown. */
  readonly foreignTools: ReadonlyArray<string>
  readonly shownTools: ReadonlyArray<string> | null
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
}

/** Duration is wall-clock time from the first claim to the end; of a summary no more is told than a bound. */
export const toRun = (row: RunRow, summaryMaxChars?: number): Run => ({
  id: row.id,
  agentId: row.agentId,
  agentName: row.agentName,
  agentVersion: row.agentVersion,
  status: row.status,
  pauseReason: row.pauseReason,
  waitingFor:
    row.waitSince === null
      ? null
      : {
          reason: "provider",
          since: row.waitSince.toISOString(),
          message: row.waitMessage ?? "",
          nextTryAt: row.nextTryAt?.toISOString() ?? null
        },
  trigger: row.trigger,
  subject: row.subject,
  ...toldSummary(row, summaryMaxChars),
  errorMessage: row.errorMessage,
  failureReason: row.failureReason,
  finishReason: row.finishReason,
  cancelledBy: row.cancelledBy,
  stepCount: row.stepCount,
  attempt: row.attempt,
  usage: row.usage,
  costUsd: Number(row.costMicros) / microsPerDollar,
  total: {
    usage: row.spentUsage ?? row.usage,
    costUsd: Number(row.spentMicros ?? row.costMicros) / microsPerDollar
  },
  limits: limitsOf(row, row.parentRunId !== null, row.limits),
  parentRunId: row.parentRunId,
  backtestId: row.backtestId,
  spawnDepth: row.spawnDepth,
  model: row.model,
  rootEventId: row.rootEventId,
  depth: row.depth,
  contextName: row.contextName,
  owner: row.owner,
  taintedBy: row.taintedBy ?? [],
  missingTools:
    // Behind the stand-in are all that the agent has.
    row.stepCount === 0 || row.shownTools?.includes(findToolsTool) === true
      ? []
      : findMissing(
          row.foreignTools,
          (row.shownTools ?? []).map((name) => name.replace("__", "."))
        ),
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  durationMs: row.startedAt && row.completedAt ? row.completedAt.getTime() - row.startedAt.getTime() : null
})

export interface EntryRow extends Omit<
  ProcessingEntry,
  "eventId" | "dueAt" | "deadLetteredAt" | "startedAt" | "completedAt" | "createdAt"
> {
  /** Null of an entry about an occurrence, which has that. */
  readonly eventId: ProcessingEntry["eventId"] | null
  readonly occurrenceId: ProcessingEntry["eventId"] | null
  readonly dueAt: Date | null
  readonly deadLetteredAt: Date | null
  readonly startedAt: Date | null
  readonly completedAt: Date | null
  readonly createdAt: Date
}

/** An entry's columns, with the name of what it is about. */
export const entryTold = (sql: SqlClient.SqlClient, entry: Statement.Fragment): Statement.Fragment =>
  sql`${entry}.*, case when ${entry}.entity_type = 'graphObject' then ${objectNamed(sql, sql`${entry}.project_id`, sql`${entry}.graph_object_id`)} end as subject`

export const toEntry = (row: EntryRow): ProcessingEntry => ({
  id: row.id,
  agentId: row.agentId,
  entityType: row.entityType,
  graphObjectId: row.graphObjectId,
  subject: row.subject,
  objectVersion: row.objectVersion,
  eventType: row.eventType,
  // The database keeps exactly one of them.
  eventId: row.eventId ?? (row.occurrenceId as ProcessingEntry["eventId"]),
  attempt: row.attempt,
  status: row.status,
  runId: row.runId,
  reason: row.reason,
  dueAt: row.dueAt?.toISOString() ?? null,
  deadLetteredAt: row.deadLetteredAt?.toISOString() ?? null,
  errorMessage: row.errorMessage,
  failureReason: row.failureReason,
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})

/**
 * What an agent has handled, has not handled, and should handle again.
 */
import { AgentId, EntryId, GraphEventId, ObjectId, ProjectId, Timestamp } from "@tropism/domain/ids"
import {
  batchMaxItems,
  BatchTriggered,
  EntryStatus,
  PendingEvent,
  ProcessingEntry
} from "@tropism/domain/processing"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery, told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "./problems.ts"

/** Ids of a request, each once. */
const named = <S extends Schema.Top>(id: S) =>
  Schema.optional(
    Schema.NullOr(Schema.Array(id).check(Schema.isBetweenLength(1, batchMaxItems), Schema.isUnique()))
  )

/** Without `ids` the oldest dead letters, up to the bound. */
export const RedriveInput = Schema.Struct({
  ids: named(EntryId)
}).annotate({ identifier: "RedriveInput" })

/** Either objects, each at its newest version, or events. */
export const BatchTriggerInput = Schema.Struct({
  objectIds: named(ObjectId),
  eventIds: named(GraphEventId)
}).annotate({ identifier: "BatchTriggerInput" })

export const Redriven = Schema.Struct({
  redriven: Schema.Array(Schema.Struct({ entryId: EntryId, newEntryId: EntryId, attempt: Schema.Int })),
  skipped: Schema.Array(Schema.Struct({ entryId: EntryId, reason: Schema.String }))
}).annotate({ identifier: "Redriven" })

/** Of one agent so many entries of a kind are counted; where there are more, the number says no more than that. */
export const countedMaxEntries = 1_000

/** How one agent keeps up with the graph, in one line. */
export const ReactionQueue = Schema.Struct({
  /** The agent. */
  id: AgentId,
  agentName: Schema.String,
  enabled: Schema.Boolean,
  /** Why a safeguard disabled it; null when none did. */
  disabledReason: Schema.NullOr(Schema.String),
  /** The types of objects that it listens to; empty is all. */
  objectTypes: Schema.Array(Schema.String),
  /** What waits for a run, and runs that wait for a worker; at most a thousand are counted. */
  waiting: Schema.Int,
  /** Since when the oldest of what was counted waits; null when nothing does. */
  waitingSince: Schema.NullOr(Timestamp),
  /** Runs that are at work; at most a thousand are counted. */
  working: Schema.Int,
  /** Entries that nobody tries any more; at most a thousand are counted. */
  deadLetters: Schema.Int,
  /** The newest entry; null when it has handled nothing. */
  newest: Schema.NullOr(
    Schema.Struct({ status: EntryStatus, reason: Schema.NullOr(Schema.String), createdAt: Timestamp })
  )
}).annotate({ identifier: "ReactionQueue" })
export type ReactionQueue = typeof ReactionQueue.Type

const agent = { projectId: ProjectId, agentId: AgentId }

export class ProcessingApi extends HttpApiGroup.make("processing")
  .add(
    /** Of each agent that reacts, the newest agent first. */
    HttpApiEndpoint.get("queues", "/reactions", {
      params: { projectId: ProjectId },
      query: PageQuery,
      success: Page(ReactionQueue),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("log", "/agents/:agentId/processing-log", {
      params: agent,
      query: { ...PageQuery, status: told(EntryStatus, "Only entries in this state") },
      success: Page(ProcessingEntry),
      error: [NotFound, InvalidInput]
    }),
    /** Tries an abandoned or failed entry again: a new entry with the next attempt and a new run, or waiting for one where the agent may begin none now; then its `reason` says for what. */
    HttpApiEndpoint.post("retry", "/agents/:agentId/processing-log/:entryId/retry", {
      params: { ...agent, entryId: EntryId },
      success: ProcessingEntry.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, TooManyRequests]
    }),
    HttpApiEndpoint.get("deadLetters", "/agents/:agentId/dead-letters", {
      params: agent,
      query: PageQuery,
      success: Page(ProcessingEntry),
      error: [NotFound, InvalidInput]
    }),
    /** Tries dead letters again, those named or the oldest; asked twice at once, each is tried once. */
    HttpApiEndpoint.post("redrive", "/agents/:agentId/dead-letters/redrive", {
      params: agent,
      payload: RedriveInput,
      success: Redriven,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }),
    /** Objects that the agent has not handled at their present version, newest first; a page may hold few and still have a next one. */
    HttpApiEndpoint.get("pendingEvents", "/agents/:agentId/pending-events", {
      params: agent,
      query: PageQuery,
      success: Page(PendingEvent),
      error: [NotFound, InvalidInput]
    }),
    /** Queues a run for each object or event that is not handled, each a chain of its own; what the agent's limits hold back waits, in the chain of its event. */
    HttpApiEndpoint.post("batchTrigger", "/agents/:agentId/batch-trigger", {
      params: agent,
      payload: BatchTriggerInput,
      success: BatchTriggered,
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

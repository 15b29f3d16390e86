/** The contract as the plain client needs it, printed by `npm run client-types`: change that, or the contract. */

import type { AskingOptions, Bytes, CallOptions, EndpointPlace, JsonObject, Listing } from "./call-shapes.ts"

export interface ServerFault {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/server-fault"
  readonly status: 500
  readonly title: "The server failed to do this"
}

export interface TooManyRequests {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly reason: "pendingRuns" | "rate"
  readonly retryAfterSeconds: number
  readonly type: "/problems/too-many-requests"
  readonly status: 429
  readonly title: "There is too much of this already"
}

export interface ForeignPage {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/foreign-page"
  readonly status: 403
  readonly title: "This does not come from a page of this server"
}

export interface Unauthorized {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/unauthorized"
  readonly status: 401
  readonly title: "A valid token is needed"
}

export interface Conflict {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly reason: "version" | "keyBusy" | "keyUnreadable" | "keyTaken" | "nameTaken" | "relationshipExists" | "alreadyDecided" | "digestMismatch" | "outdated" | "notPermitted" | "untrusted" | "agentDisabled" | "tooManySuggestions" | "rejectedBefore" | "expired" | "stopped" | "state" | "lastAdmin" | "idTaken" | "finished" | "otherFile" | "otherSettings" | "answered" | "unknown" | "notWaiting"
  readonly conflicts?: ReadonlyArray<PropertyConflict> | undefined
  readonly current?: number | null | undefined
  readonly gone?: boolean | undefined
  readonly relationships?: ReadonlyArray<AddedRelationship> | undefined
  readonly existingId?: string | undefined
  readonly type: "/problems/conflict"
  readonly status: 409
  readonly title: "The present state does not allow this"
}

export interface AddedRelationship {
  readonly id: string
  readonly type: string
  readonly fromId: string
  readonly toId: string
}

export interface PropertyConflict {
  readonly pointer: string
  readonly base?: unknown
  readonly current?: unknown
  readonly suggested?: unknown
}

export interface BodyTooLarge {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/body-too-large"
  readonly status: 413
  readonly title: "The body is too large"
}

export interface InvalidInput {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly errors: ReadonlyArray<{
    readonly pointer: string
    readonly message: string
    readonly field?: string | undefined
  }>
  readonly reason?: "unknownParent" | "embeddingUnavailable" | undefined
  readonly type: "/problems/invalid-input"
  readonly status: 422
  readonly title: "Something in the request is wrong"
}

export interface MalformedRequest {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly errors?: ReadonlyArray<{
    readonly pointer: string
    readonly message: string
    readonly field?: string | undefined
  }> | undefined
  readonly type: "/problems/malformed-request"
  readonly status: 400
  readonly title: "The request cannot be read"
}

export interface Unavailable {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly reason?: "stopping" | "partEnded" | "databaseAway" | "databaseFull" | "databaseReadOnly" | undefined
  readonly type: "/problems/unavailable"
  readonly status: 503
  readonly title: "The server cannot work at the moment"
}

export interface NotFound {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/not-found"
  readonly status: 404
  readonly title: "Not found"
}

export interface Verification {
  readonly checked: {
    readonly objects: number
    readonly relationships: number
    readonly versions: number
    readonly contexts: number
    readonly contextEvents: number
    readonly runs: number
  }
  readonly differenceCount: number
  readonly differences: ReadonlyArray<Difference>
}

export interface Difference {
  readonly rule: "versions" | "present" | "event" | "changedProperties" | "propertyVersions" | "logNumbers" | "parents" | "turns" | "run" | "toolCall" | "openTurn" | "snapshot"
  readonly kind: "object" | "relationship" | "context"
  readonly id: string
  readonly detail: string
}

export interface NewDelivery {
  readonly runId: string
  readonly repeated: boolean
}

export interface Delivery {
  readonly runId: string
  readonly repeated: boolean
}

export interface Forbidden {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/forbidden"
  readonly status: 403
  readonly title: "You may not do this"
}

export interface OpenedWebhook {
  readonly id: string
  readonly agentId: string
  readonly name: string
  readonly url: string
  readonly ratePerMinute: number
  readonly untrusted: boolean
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly lastDeliveryAt: string | null
  readonly previousTokenUntil: string | null
  readonly token: string
  readonly signingSecret: string
}

export interface RotationInput {
  readonly graceSeconds?: number | null | undefined
}

export interface Webhook {
  readonly id: string
  readonly agentId: string
  readonly name: string
  readonly url: string
  readonly ratePerMinute: number
  readonly untrusted: boolean
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly lastDeliveryAt: string | null
  readonly previousTokenUntil: string | null
}

export interface WebhookInput {
  readonly name?: string | null | undefined
  readonly ratePerMinute?: number | null | undefined
  readonly untrusted?: boolean | null | undefined
}

export interface UndoItem {
  readonly id: string
  readonly place: number
  readonly entityType: "graphObject" | "relationship"
  readonly objectType: string
  readonly key: string | null
  readonly action: "delete" | "restore" | "update" | "none"
  readonly status: "ready" | "conflict" | "unneeded"
  readonly reason: string
  readonly version: number
  readonly properties: ReadonlyArray<UndoneProperty>
  readonly leftOut: boolean
}

export interface UndoneProperty {
  readonly property: string
  readonly status: "ready" | "conflict" | "unneeded"
  readonly now?: unknown
  readonly back?: unknown
  readonly untrusted?: boolean | undefined
}

export interface WaitingUndoTask {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly type: "undo"
  readonly payload: UndoPayload
  readonly digest: string
  readonly revision: number
  readonly outcome: UndoOutcome | null
}

export interface UndoOutcome {
  readonly undone: number
  readonly leftOut: number
  readonly expiredSuggestions: number
  readonly reverted: ReadonlyArray<Reverted>
}

export interface Reverted {
  readonly agentId: string
  readonly agentVersion: number
  readonly entityType: "graphObject" | "relationship"
  readonly objectType: string
  readonly operation: "created" | "updated" | "deleted"
  readonly count: number
}

export interface UndoPayload {
  readonly cause: UndoCause
  readonly requestedBy: string
  readonly counts: {
    readonly ready: number
    readonly conflicts: number
    readonly unneeded: number
    readonly kept: number
    readonly suggestions: number
  }
  readonly agents: ReadonlyArray<{
    readonly id: string
    readonly name: string
  }>
}

export type UndoCause = {
  readonly type: "run"
  readonly runId: string
} | {
  readonly type: "agentVersion"
  readonly agentId: string
  readonly version: number
} | {
  readonly type: "chain"
  readonly rootEventId: string
}

export interface UndoTask {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly type: "undo"
  readonly payload: UndoPayload
  readonly digest: string
  readonly revision: number
  readonly outcome: UndoOutcome | null
}

export interface AgentUndo {
  readonly version: number
}

export interface ToolCallRecord {
  readonly id: string
  readonly runId: string | null
  readonly agentId: string | null
  readonly userId: string | null
  readonly contextName: string | null
  readonly callId: string
  readonly tool: string
  readonly arguments: unknown
  readonly coerced: CoercedArguments | null
  readonly status: "started" | "completed" | "failed" | "refused" | "unknown" | "abandoned"
  readonly decision: "execute" | "suggest" | "refuse" | null
  readonly promotionId: string | null
  readonly result: unknown
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly completedAt: string | null
  readonly durationMs: number | null
}

export interface CoercedArguments {
  readonly sent: unknown
  readonly changes: ReadonlyArray<{
    readonly pointer: string
    readonly change: "unwrapped" | "parsed" | "renamed" | "dropped"
    readonly to?: string | undefined
  }>
}

export interface Denial {
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly at: string
  readonly door: "run" | "chat" | "subAgent" | "approval" | "mcp"
  readonly agentId: string | null
  readonly agentName: string | null
  readonly runId: string | null
  readonly userId: string | null
  readonly taskId: string | null
  readonly toolCallId: string | null
  readonly tool: string
  readonly change: {
    readonly type: "create"
    readonly objectType: string
    readonly key: string | null
    readonly data: Properties
    readonly untrusted?: ReadonlyArray<string> | undefined
  } | {
    readonly type: "update"
    readonly objectId: string
    readonly data: Properties
    readonly untrusted?: ReadonlyArray<string> | undefined
    readonly expectedVersion?: number | undefined
  } | {
    readonly type: "delete"
    readonly objectId: string
    readonly expectedVersion?: number | undefined
  } | {
    readonly type: "createRelationship"
    readonly relationship: {
      readonly fromId: string
      readonly toId: string
      readonly type: string
    }
    readonly data: Properties
    readonly untrusted?: ReadonlyArray<string> | undefined
  } | {
    readonly type: "updateRelationship"
    readonly relationshipId: string
    readonly data: Properties
    readonly untrusted?: ReadonlyArray<string> | undefined
    readonly expectedVersion?: number | undefined
  } | {
    readonly type: "deleteRelationship"
    readonly relationshipId: string
    readonly expectedVersion?: number | undefined
  } | null
  readonly reason: "notPermitted" | "untrusted" | "agentDisabled" | "forbidden" | "tooManySuggestions" | "rejectedBefore"
  readonly detail: string
}

/** A JSON object: depth at most 64, at most 1,000 keys in one object, at most 256 KiB */
export type Properties = JsonObject

export interface RejectionOfAll {
  readonly reason?: string | null | undefined
}

export type Task = {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly digest: string
  readonly agentId: string
  readonly agentName: string
  readonly runId: string
  readonly assignee: string | null
  readonly type: "object_create_suggestion" | "object_update_suggestion" | "object_delete_suggestion" | "relationship_create_suggestion" | "relationship_update_suggestion" | "relationship_delete_suggestion"
  readonly payload: {
    readonly agentId: string
    readonly agentRunId: string
    readonly confidence?: number | undefined
    readonly reasoning?: string | undefined
    readonly suggestedChanges: {
      readonly type: "create"
      readonly objectType: string
      readonly key: string | null
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "update"
      readonly objectId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "delete"
      readonly objectId: string
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "createRelationship"
      readonly relationship: {
        readonly fromId: string
        readonly toId: string
        readonly type: string
      }
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "updateRelationship"
      readonly relationshipId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "deleteRelationship"
      readonly relationshipId: string
      readonly expectedVersion?: number | undefined
    }
  }
  readonly agentState: "enabled" | "disabled" | "deleted"
  readonly agentVersion: number
  readonly revision: number
  readonly refinedAt: string | null
  readonly expiresAt: string | null
  readonly baseVersion: number | null
  readonly evidence: ReadonlyArray<{
    readonly objectId: string
    readonly type: string
    readonly version: number
  }>
  readonly untrusted: ReadonlyArray<Taint>
  readonly target: GraphObject | null
  readonly relationship: Relationship | null
  readonly staleness: Staleness | null
  readonly denial: string | null
  readonly rerun: {
    readonly runId: string
    readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
  } | null
  readonly outcome: {
    readonly entityId: string
    readonly version: number
    readonly change: "created" | "updated" | "deleted" | "unchanged"
    readonly rebasedFrom?: {
      readonly version: number
      readonly moved: ReadonlyArray<string>
    } | undefined
  } | null
} | {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly type: "undo"
  readonly payload: UndoPayload
  readonly digest: string
  readonly revision: number
  readonly outcome: UndoOutcome | null
} | {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly digest: string
  readonly agentId: string
  readonly agentName: string
  readonly runId: string
  readonly assignee: string | null
  readonly type: "question"
  readonly payload: {
    readonly agentId: string
    readonly agentRunId: string
    readonly question: string
    readonly options?: ReadonlyArray<string> | undefined
    readonly answer?: string | undefined
  }
} | {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly type: "todo"
  readonly owner: string
} | {
  readonly id: string
  readonly number: number
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly description: string | null
  readonly resolvedBy: string | null
  readonly resolutionNote: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
  readonly type: "promotion"
  readonly payload: {
    readonly promotionId: string
    readonly agentId: string
    readonly agentVersion: number
    readonly operation: "create" | "update" | "delete" | "createRelationship" | "updateRelationship" | "deleteRelationship"
    readonly objectType: string
    readonly reviews: number
    readonly rate: number
  }
  readonly digest: string
  readonly agentId: string
  readonly agentName: string
}

export interface Staleness {
  readonly state: "fresh" | "rebasable" | "outdated" | "gone"
  readonly currentVersion: number | null
  readonly moved: ReadonlyArray<string>
  readonly conflicts: ReadonlyArray<string>
  readonly added: ReadonlyArray<AddedRelationship>
  readonly takenBy: string | null
  readonly evidenceChanged: ReadonlyArray<{
    readonly objectId: string
    readonly type: string
    readonly version: number
    readonly currentVersion: number | null
  }>
}

export interface Relationship {
  readonly id: string
  readonly type: string
  readonly fromId: string
  readonly toId: string
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly version: number
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface GraphObject {
  readonly id: string
  readonly type: string
  readonly key: string | null
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly version: number
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface Taint {
  readonly kind: "object" | "relationship" | "attachment" | "mcpServer" | "webhook" | "todo" | "clientTool" | "context"
  readonly id: string
  readonly properties?: ReadonlyArray<string> | undefined
  readonly at: number
}

export interface Rejection {
  readonly reason?: string | null | undefined
  readonly digest?: string | null | undefined
}

export interface Decided {
  readonly taskId: string
  readonly task?: Task | undefined
  readonly problem?: Conflict | InvalidInput | NotFound | Forbidden | undefined
}

export interface Decisions {
  readonly decision: "approve" | "reject"
  readonly reason?: string | null | undefined
  readonly tasks: ReadonlyArray<{
    readonly taskId: string
    readonly digest?: string | null | undefined
  }>
}

export interface Approval {
  readonly digest?: string | null | undefined
  readonly suggestedChanges?: {
    readonly data: Properties
    readonly baseVersion?: number | null | undefined
  } | null | undefined
  readonly leaveOut?: ReadonlyArray<string> | null | undefined
}

export interface TaskRevision {
  readonly revision: number
  readonly payload: {
    readonly agentId: string
    readonly agentRunId: string
    readonly confidence?: number | undefined
    readonly reasoning?: string | undefined
    readonly suggestedChanges: {
      readonly type: "create"
      readonly objectType: string
      readonly key: string | null
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "update"
      readonly objectId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "delete"
      readonly objectId: string
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "createRelationship"
      readonly relationship: {
        readonly fromId: string
        readonly toId: string
        readonly type: string
      }
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "updateRelationship"
      readonly relationshipId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "deleteRelationship"
      readonly relationshipId: string
      readonly expectedVersion?: number | undefined
    }
  }
  readonly digest: string
  readonly runId: string
  readonly agentVersion: number
  readonly baseVersion: number | null
  readonly evidence: ReadonlyArray<{
    readonly objectId: string
    readonly type: string
    readonly version: number
  }>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface PreconditionFailed {
  readonly detail?: string | undefined
  readonly instance?: string | undefined
  readonly type: "/problems/precondition-failed"
  readonly status: 412
  readonly title: "It is not what If-Match names"
}

export interface TaskChange {
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  readonly assignee?: string | null | undefined
  readonly expiresAt?: string | null | undefined
}

export interface NewTodo {
  /** What is to be done, 1 to 200 characters */
  readonly title: string
  readonly description?: string | null | undefined
}

export interface SentAttachment {
  readonly digest: string
  readonly mimeType: "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "application/json" | "text/plain" | "text/markdown" | "text/csv"
  readonly sizeBytes: number
  readonly untrusted: boolean
  readonly fileName: string | null
}

export interface Backtest {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly agentVersion: number
  readonly status: "queued" | "running" | "completed" | "cancelled" | "failed"
  readonly days: number | null
  readonly objectIds: ReadonlyArray<string> | null
  readonly maxEvents: number
  readonly maxCostUsd: number | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly from: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly to: string
  readonly events: {
    readonly looked: number
    readonly matched: number
    readonly chosen: number
    readonly done: number
  }
  readonly detail: string | null
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
}

export interface BacktestResult {
  readonly number: number
  readonly event: {
    readonly id: string
    readonly type: "created" | "updated" | "deleted"
    readonly entityType: "graphObject" | "relationship"
    readonly objectId: string
    readonly objectType: string
    readonly version: number
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
  }
  readonly subject: NamedObject | null
  readonly runId: string | null
  readonly runStatus: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped" | null
  readonly errorMessage: string | null
  readonly earlier: ReadonlyArray<{
    readonly taskId: string
    readonly number: number
    readonly status: "pending" | "completed" | "rejected" | "expired"
    readonly change: {
      readonly type: "create"
      readonly objectType: string
      readonly key: string | null
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "update"
      readonly objectId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "delete"
      readonly objectId: string
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "createRelationship"
      readonly relationship: {
        readonly fromId: string
        readonly toId: string
        readonly type: string
      }
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "updateRelationship"
      readonly relationshipId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "deleteRelationship"
      readonly relationshipId: string
      readonly expectedVersion?: number | undefined
    }
    readonly isEdited: boolean
    readonly now: "same" | "edited" | "different" | "none" | null
    readonly agrees: boolean | null
  }>
  readonly now: ReadonlyArray<{
    readonly change: {
      readonly type: "create"
      readonly objectType: string
      readonly key: string | null
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "update"
      readonly objectId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "delete"
      readonly objectId: string
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "createRelationship"
      readonly relationship: {
        readonly fromId: string
        readonly toId: string
        readonly type: string
      }
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
    } | {
      readonly type: "updateRelationship"
      readonly relationshipId: string
      readonly data: Properties
      readonly untrusted?: ReadonlyArray<string> | undefined
      readonly expectedVersion?: number | undefined
    } | {
      readonly type: "deleteRelationship"
      readonly relationshipId: string
      readonly expectedVersion?: number | undefined
    }
    readonly confidence: number | null
    readonly reasoning: string | null
    readonly isNew: boolean
  }>
}

export interface NamedObject {
  readonly objectId: string
  readonly type: string
  readonly name: string | null
}

export interface ReportedBacktest {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly agentVersion: number
  readonly status: "queued" | "running" | "completed" | "cancelled" | "failed"
  readonly days: number | null
  readonly objectIds: ReadonlyArray<string> | null
  readonly maxEvents: number
  readonly maxCostUsd: number | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly from: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly to: string
  readonly events: {
    readonly looked: number
    readonly matched: number
    readonly chosen: number
    readonly done: number
  }
  readonly detail: string | null
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly report: BacktestReport
}

export interface BacktestReport {
  readonly agreement: {
    readonly agreed: number
    readonly judged: number
    readonly rate: number | null
  }
  readonly byOperation: ReadonlyArray<{
    readonly objectType: string
    readonly operation: "create" | "update" | "delete" | "createRelationship" | "updateRelationship" | "deleteRelationship"
    readonly agreed: number
    readonly judged: number
    readonly rate: number | null
  }>
  readonly edited: {
    readonly asEdited: number
    readonly asSuggested: number
    readonly neither: number
  }
  readonly properties: {
    readonly same: number
    readonly suggested: number
    readonly accepted: number
    readonly precision: number | null
    readonly recall: number | null
  }
  readonly newSuggestions: number
  readonly undecided: number
  readonly runs: {
    readonly completed: number
    readonly failed: number
    readonly cancelled: number
    readonly paused: number
  }
  readonly refusals: ReadonlyArray<{
    readonly reason: string
    readonly count: number
  }>
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number
}

export interface BacktestInput {
  readonly version?: number | null | undefined
  readonly days?: number | null | undefined
  readonly objectIds?: ReadonlyArray<string> | null | undefined
  readonly maxEvents?: number | null | undefined
  readonly maxCostUsd?: number | null | undefined
}

export interface ExportedConversation {
  readonly id: string
  readonly agentId: string
  readonly contextName: string
  readonly title: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
  readonly messages: ReadonlyArray<ConversationMessage>
}

export interface ConversationMessage {
  readonly id: string
  readonly role: "user" | "assistant"
  readonly content: string
  readonly toolCalls: ReadonlyArray<ChatToolCall>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly finishReason?: "length" | "content-filter" | "pause" | undefined
}

export interface ChatToolCall {
  readonly tool: string
  readonly arguments: unknown
  readonly result: unknown | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
}

export interface Conversation {
  readonly id: string
  readonly agentId: string
  readonly contextName: string
  readonly title: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface ConversationInput {
  readonly agentId: string
  readonly title?: string | null | undefined
}

export interface Comparison {
  readonly id: string
  readonly context: string
  readonly content: string
  readonly variants: ReadonlyArray<ComparedVariant>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface ComparedVariant {
  readonly label: string
  readonly context: string
  readonly runId: string
  readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
  readonly answer: string | null
  readonly errorMessage: string | null
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number
  readonly durationMs: number | null
  readonly model: string | null
  readonly stepCount: number
  readonly toolCalls: ReadonlyArray<{
    readonly tool: string
    readonly status: "pending" | "started" | "completed" | "failed" | "refused" | "unknown" | "abandoned"
  }>
}

export interface ComparisonInput {
  readonly content: string
  readonly variants: ReadonlyArray<VariantInput>
  readonly at?: number | null | undefined
  readonly allowWrites?: boolean | null | undefined
}

export interface VariantInput {
  readonly label: string
  readonly systemPrompt?: string | null | undefined
  readonly content?: string | null | undefined
  readonly model?: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly temperature?: number | null | undefined
    readonly maxOutputTokens?: number | null | undefined
  } | null | undefined
}

export interface UnfinishedChatAnswer {
  readonly conversationId: string
  readonly status: "completed" | "waiting" | "working" | "interrupted" | "failed"
  readonly response: string
  readonly toolCalls: ReadonlyArray<ChatToolCall>
  readonly finishReason?: "length" | "content-filter" | "pause" | undefined
  readonly runId: string | null
  readonly conversation_id: string
  readonly tool_calls: ReadonlyArray<ChatToolCall>
}

export interface ChatAnswer {
  readonly conversationId: string
  readonly status: "completed" | "waiting" | "working" | "interrupted" | "failed"
  readonly response: string
  readonly toolCalls: ReadonlyArray<ChatToolCall>
  readonly finishReason?: "length" | "content-filter" | "pause" | undefined
  readonly runId: string | null
  readonly conversation_id: string
  readonly tool_calls: ReadonlyArray<ChatToolCall>
}

export interface ChatInput {
  readonly conversationId?: string | null | undefined
  readonly conversation_id?: string | null | undefined
  readonly agentId?: string | null | undefined
  readonly message: string
}

export type LoggedEvent = SessionStartedEvent | SessionEndedEvent | ContextForkedEvent | HistoryGivenEvent | SystemPromptEvent | UserMessageEvent | FileAttachmentEvent | AssistantMessageEvent | SetLlmConfigEvent | SetTimeoutEvent | SetRetryConfigEvent | SetRacingEvent | SetGuardEvent | SetMemoryConfigEvent | SetReducerEvent | DefineToolEvent | DefineWorkflowEvent | ComparisonStartedEvent | ContextSummarizedEvent | ContextNotedEvent | MemoryRecalledEvent | GuardVerdictEvent | SoftStopEvent | FlowStepStartedEvent | LoopWarningEvent | ContinuationRequestedEvent | RunResumedEvent | InterruptRequestedEvent | AgentTurnStartedEvent | AgentTurnCompletedEvent | AgentTurnInterruptedEvent | AgentTurnFailedEvent | ToolCallStartedEvent | ToolCallCompletedEvent | ToolCallFailedEvent

export interface ToolCallFailedEvent {
  readonly type: "ToolCallFailedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly callId: string
  readonly tool: string
  readonly error: unknown
  readonly userId?: string | undefined
}

export interface ToolCallCompletedEvent {
  readonly type: "ToolCallCompletedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly callId: string
  readonly tool: string
  readonly result: unknown
  readonly pictures?: ReadonlyArray<{
    readonly digest: string
    readonly mimeType: "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "application/json" | "text/plain" | "text/markdown" | "text/csv"
    readonly sizeBytes: number
  }> | undefined
  readonly userId?: string | undefined
}

export interface ToolCallStartedEvent {
  readonly type: "ToolCallStartedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly callId: string
  readonly tool: string
  readonly arguments: unknown
  readonly coerced?: CoercedArguments | undefined
  readonly standsFor?: {
    readonly tool: string
    readonly arguments: unknown
  } | undefined
  readonly waitsFor?: "run" | "person" | "client" | undefined
}

export interface AgentTurnFailedEvent {
  readonly type: "AgentTurnFailedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly turnNumber: number
  readonly error: string
  readonly reason?: "model" | "contentFilter" | "emptyAnswer" | "prompt" | "guard" | "doomLoop" | "refused" | "noProgress" | undefined
}

export interface AgentTurnInterruptedEvent {
  readonly type: "AgentTurnInterruptedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly turnNumber: number
  readonly reason: "crash" | "message" | "user" | "cancelled" | "stepLimit" | "timeout" | "budget" | "forked"
  readonly partialText?: string | undefined
}

export interface AgentTurnCompletedEvent {
  readonly type: "AgentTurnCompletedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly turnNumber: number
  readonly durationMs: number
}

export interface AgentTurnStartedEvent {
  readonly type: "AgentTurnStartedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly turnNumber: number
}

export interface InterruptRequestedEvent {
  readonly type: "InterruptRequestedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly by: string
}

export interface RunResumedEvent {
  readonly type: "RunResumedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly by: string
  readonly content: string
  readonly userId?: string | undefined
}

export interface ContinuationRequestedEvent {
  readonly type: "ContinuationRequestedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly content: string
}

export interface LoopWarningEvent {
  readonly type: "LoopWarningEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly reason: "cycle" | "errorStreak"
  readonly content: string
}

export interface FlowStepStartedEvent {
  readonly type: "FlowStepStartedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly step: string
  readonly index: number
  readonly iteration: number
  readonly content: string
}

export interface SoftStopEvent {
  readonly type: "SoftStopEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly reason: "stepLimit" | "timeout"
  readonly content: string
  readonly runId?: string | undefined
  readonly partialText?: string | undefined
}

export interface GuardVerdictEvent {
  readonly type: "GuardVerdictEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly isFlagged: boolean
  readonly reason: string
  readonly content: string
  readonly messages: number
  readonly runId: string
  readonly model: string
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
}

export interface MemoryRecalledEvent {
  readonly type: "MemoryRecalledEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly content: string
  readonly passages: ReadonlyArray<{
    readonly context: string
    readonly eventId: string
  }>
}

export interface ContextNotedEvent {
  readonly type: "ContextNotedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly content: string | null
  readonly error?: string | undefined
  readonly messages: number
  readonly runId: string
  readonly model: string
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
}

export interface ContextSummarizedEvent {
  readonly type: "ContextSummarizedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly content: string | null
  readonly error?: string | undefined
  readonly messages: number
  readonly runId: string
  readonly model: string
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
}

export interface ComparisonStartedEvent {
  readonly type: "ComparisonStartedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly comparison: string
  readonly content: string
  readonly variants: ReadonlyArray<{
    readonly label: string
    readonly context: string
    readonly runId: string
  }>
}

export interface DefineWorkflowEvent {
  readonly type: "DefineWorkflowEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly flowType: "single" | "sequential" | "loop"
  readonly steps: ReadonlyArray<FlowStep>
  readonly maxIterations: number | null
}

export interface FlowStep {
  readonly name: string
  readonly prompt: string
  readonly tools: ReadonlyArray<string> | null
  readonly model: ModelConfig | null
}

export interface ModelConfig {
  readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
  readonly name: string
  readonly price?: ModelPrice | null | undefined
  readonly contextWindow?: number | null | undefined
  readonly silenceTimeoutMs?: number | null | undefined
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly reasoning?: "none" | "low" | "medium" | "high" | null | undefined
  readonly providerOptions?: JsonObject | null | undefined
  readonly maxConcurrency?: number | null | undefined
  readonly script?: Script | null | undefined
  readonly fallback?: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly price?: ModelPrice | null | undefined
    readonly contextWindow?: number | null | undefined
    readonly silenceTimeoutMs?: number | null | undefined
  } | null | undefined
  readonly race?: boolean | null | undefined
  readonly guard?: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly instructions?: string | null | undefined
  } | null | undefined
}

export interface ModelPrice {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  readonly cachedInputPerMillion?: number | null | undefined
  readonly cacheWritePerMillion?: number | null | undefined
  readonly longPrompts?: {
    readonly overTokens: number
    readonly inputPerMillion: number
    readonly outputPerMillion: number
    readonly cachedInputPerMillion?: number | null | undefined
    readonly cacheWritePerMillion?: number | null | undefined
  } | null | undefined
}

export interface Script {
  readonly values?: JsonObject | null | undefined
  readonly rules: ReadonlyArray<{
    readonly when?: string | null | undefined
    readonly say?: string | null | undefined
    readonly calls?: ReadonlyArray<{
      readonly tool: string
      readonly arguments: JsonObject
    }> | null | undefined
    readonly latencyMs?: number | null | undefined
    readonly tokensPerSecond?: number | null | undefined
    readonly fault?: {
      readonly kind: "error" | "rateLimited" | "cut" | "hang"
      readonly message?: string | null | undefined
    } | null | undefined
  }>
}

export interface DefineToolEvent {
  readonly type: "DefineToolEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly name: string
  readonly description?: string | null | undefined
  readonly tool?: string | null | undefined
  readonly arguments?: JsonObject | undefined
  readonly inputSchema?: JsonObject | null | undefined
  readonly timeoutMs?: number | null | undefined
}

export interface SetReducerEvent {
  readonly type: "SetReducerEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly reducer: {
    readonly type: "whole"
  } | {
    readonly type: "truncating"
    readonly maxMessages: number | null
    readonly maxTokens: number | null
  } | {
    readonly type: "summarizing"
    readonly maxTokens: number
    readonly keepTokens: number
    readonly instructions?: string | undefined
  }
  readonly isOfAgent?: boolean | undefined
}

export interface SetMemoryConfigEvent {
  readonly type: "SetMemoryConfigEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly recallPassages: number
  readonly keepsSummary: boolean
}

export interface SetGuardEvent {
  readonly type: "SetGuardEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly guard: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly instructions?: string | null | undefined
  } | null
}

export interface SetRacingEvent {
  readonly type: "SetRacingEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly isRacing: boolean
}

export interface SetRetryConfigEvent {
  readonly type: "SetRetryConfigEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly maxRetries: number
  readonly baseMs: number
  readonly maxMs: number
  readonly factor?: number | undefined
}

export interface SetTimeoutEvent {
  readonly type: "SetTimeoutEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly timeoutMs: number
}

export interface SetLlmConfigEvent {
  readonly type: "SetLlmConfigEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly role: "primary" | "fallback"
  readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
  readonly name: string
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly toolChoice?: "auto" | "none" | null | undefined
}

export interface AssistantMessageEvent {
  readonly type: "AssistantMessageEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly content: string
  readonly toolCalls: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly arguments: unknown
    readonly fault?: string | undefined
  }>
  readonly runId: string
  readonly model: string
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly parts?: ReadonlyArray<{
    readonly type: "reasoning"
    readonly text: string
    readonly metadata?: { readonly [name: string]: JsonObject } | undefined
  } | {
    readonly type: "text"
    readonly chars: number
    readonly metadata?: { readonly [name: string]: JsonObject } | undefined
  } | {
    readonly type: "toolCall"
    readonly id: string
    readonly metadata?: { readonly [name: string]: JsonObject } | undefined
  }> | undefined
  readonly finishReason?: string | undefined
  readonly leftOut?: LeftOut | undefined
  readonly continues?: boolean | undefined
}

export interface LeftOut {
  readonly messages: number
  readonly texts: number
  readonly tokens: number
  readonly maxTokens: number
}

export interface FileAttachmentEvent {
  readonly type: "FileAttachmentEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly source: {
    readonly type: "upload"
  } | {
    readonly type: "url"
    readonly url: string
  }
  readonly mimeType: "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "application/json" | "text/plain" | "text/markdown" | "text/csv"
  readonly fileName: string | null
  readonly digest: string
  readonly sizeBytes: number
  readonly untrusted?: boolean | undefined
}

export interface UserMessageEvent {
  readonly type: "UserMessageEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly content: string
}

export interface SystemPromptEvent {
  readonly type: "SystemPromptEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly userId?: string | undefined
  readonly content: string
}

export interface HistoryGivenEvent {
  readonly type: "HistoryGivenEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly instructions: string | null
  readonly replaces?: string | undefined
  readonly messages: ReadonlyArray<{
    readonly role: "user"
    readonly content: string
    readonly files?: ReadonlyArray<{
      readonly digest: string
      readonly mimeType: "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "application/json" | "text/plain" | "text/markdown" | "text/csv"
      readonly fileName: string | null
      readonly untrusted?: boolean | undefined
    }> | undefined
  } | {
    readonly role: "assistant" | "system"
    readonly content: string
  }>
}

export interface ContextForkedEvent {
  readonly type: "ContextForkedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly from: string
  readonly at: number
}

export interface SessionEndedEvent {
  readonly type: "SessionEndedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly reason?: "crash" | undefined
}

export interface SessionStartedEvent {
  readonly type: "SessionStartedEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
}

export type EventInput = MessageInput | SystemPromptInput | FileInput | ToolResultInput | SetLlmConfigInput | SetTimeoutInput | SetRetryConfigInput | SetRacingInput | SetGuardInput | SetMemoryConfigInput | SetReducerInput | DefineToolInput | DefineWorkflowInput

export interface DefineWorkflowInput {
  readonly type: "DefineWorkflowEvent"
  readonly flowType: "single" | "sequential" | "loop"
  readonly steps?: ReadonlyArray<FlowStepInput> | null | undefined
  readonly maxIterations?: number | null | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface FlowStepInput {
  readonly name: string
  readonly prompt: string
  readonly tools?: ReadonlyArray<string> | null | undefined
  readonly model?: ModelConfig | null | undefined
}

export interface DefineToolInput {
  readonly type: "DefineToolEvent"
  readonly name: string
  readonly description?: string | null | undefined
  readonly tool?: string | null | undefined
  readonly arguments?: JsonObject | undefined
  readonly inputSchema?: JsonObject | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetReducerInput {
  readonly type: "SetReducerEvent"
  readonly reducer: {
    readonly type: "whole"
  } | {
    readonly type: "truncating"
    readonly maxMessages: number | null
    readonly maxTokens: number | null
  } | {
    readonly type: "summarizing"
    readonly maxTokens: number
    readonly keepTokens: number
    readonly instructions?: string | undefined
  }
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetMemoryConfigInput {
  readonly type: "SetMemoryConfigEvent"
  readonly recallPassages: number
  readonly keepsSummary: boolean
  readonly embeddingModel?: string | {
    readonly provider: string
    readonly name: string
  } | null | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetGuardInput {
  readonly type: "SetGuardEvent"
  readonly guard: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly instructions?: string | null | undefined
  } | null
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetRacingInput {
  readonly type: "SetRacingEvent"
  readonly isRacing: boolean
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetRetryConfigInput {
  readonly type: "SetRetryConfigEvent"
  readonly maxRetries: number
  readonly baseMs: number
  readonly maxMs: number
  readonly factor?: number | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetTimeoutInput {
  readonly type: "SetTimeoutEvent"
  readonly timeoutMs: number
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SetLlmConfigInput {
  readonly type: "SetLlmConfigEvent"
  readonly role: "primary" | "fallback"
  readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
  readonly name: string
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly toolChoice?: "auto" | "none" | null | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface ToolResultInput {
  readonly type: "ToolResultEvent"
  readonly callId: string
  readonly result?: unknown | null | undefined
  readonly error?: string | JsonObject | null | undefined
  readonly untrusted?: boolean | null | undefined
}

export interface FileInput {
  readonly type: "FileAttachmentEvent"
  readonly attachment?: string | null | undefined
  readonly url?: string | null | undefined
  readonly source?: string | null | undefined
  readonly mimeType?: "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf" | "application/json" | "text/plain" | "text/markdown" | "text/csv" | null | undefined
  readonly fileName?: string | null | undefined
  readonly untrusted?: boolean | null | undefined
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface SystemPromptInput {
  readonly type: "SystemPromptEvent"
  readonly content: string
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface MessageInput {
  readonly type: "UserMessageEvent"
  readonly content: string
  readonly triggersAgentTurn?: boolean | null | undefined
  readonly parentEventId?: string | null | undefined
}

export interface LaterInterrupt {
  readonly detail: string
}

export interface Context {
  readonly name: string
  readonly agentId: string
  readonly eventCount: number
  readonly forkedFrom: {
    readonly name: string
    readonly at: number
  } | null
  readonly isTurnOpen: boolean
  readonly taintedBy: ReadonlyArray<Taint>
  readonly owner: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface Replay {
  readonly events: number
  readonly engineEvents: number
  readonly isEqual: boolean
  readonly firstDifference?: ReplayDifference | undefined
}

export interface ReplayDifference {
  readonly eventId: string
  readonly detail: string
  readonly expected: unknown | null
  readonly found: unknown
}

export interface ContextState {
  readonly name: string
  readonly nextEventNumber: number
  readonly lastEventId: string | null
  readonly currentTurnNumber: number
  readonly agentTurnStartedAtEventId: string | null
  readonly isTurnDue: boolean
  readonly isSessionOpen: boolean
  readonly config: {
    readonly primary: {
      readonly provider: string
      readonly name: string
      readonly temperature?: number | null | undefined
      readonly maxOutputTokens?: number | null | undefined
    } | null
    readonly fallback: {
      readonly provider: string
      readonly name: string
      readonly temperature?: number | null | undefined
      readonly maxOutputTokens?: number | null | undefined
    } | null
    readonly timeoutMs: number | null
    readonly retry: {
      readonly maxRetries: number
      readonly baseMs: number
      readonly maxMs: number
      readonly factor: number
    } | null
    readonly isRacing: boolean
    readonly guard: {
      readonly provider: string
      readonly name: string
      readonly instructions: string | null
    } | null
    readonly memory: {
      readonly recallPassages: number
      readonly keepsSummary: boolean
    } | null
    readonly reducer: {
      readonly type: "whole"
    } | {
      readonly type: "truncating"
      readonly maxMessages: number | null
      readonly maxTokens: number | null
    } | {
      readonly type: "summarizing"
      readonly maxTokens: number
      readonly keepTokens: number
      readonly instructions?: string | undefined
    }
    readonly tools: ReadonlyArray<{
      readonly name: string
      readonly description: string | null
      readonly tool: string | null
      readonly arguments: JsonObject
      readonly inputSchema: JsonObject | null
      readonly timeoutMs: number | null
    }>
    readonly workflow: {
      readonly flowType: "single" | "sequential" | "loop"
      readonly steps: ReadonlyArray<FlowStep>
      readonly maxIterations: number | null
    } | null
  }
  readonly flow: {
    readonly step: string
    readonly index: number
    readonly iteration: number
  } | null
  readonly summary: string | null
  readonly notes: string | null
  readonly droppedMessages: number
  readonly promptTokens: number
  readonly messages: ReadonlyArray<unknown>
  readonly pendingCalls: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly arguments: unknown
    readonly fault?: string | undefined
  }>
}

export interface ModelExchange {
  readonly number: number
  readonly purpose: "step" | "guard" | "summary" | "notes"
  readonly step: number
  readonly flowStep: FlowStepAtWork | null
  readonly try: number
  readonly provider: string
  readonly model: string
  readonly status: "answered" | "failed"
  readonly finishReason: string | null
  readonly error: string | null
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly isUsageEstimated: boolean
  readonly costUsd: number | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly startedAt: string
  readonly firstOutputMs: number | null
  readonly durationMs: number
  readonly afterEvent: number
  readonly answerEvent: number | null
  readonly request: {
    readonly messages: ReadonlyArray<unknown>
    readonly tools: ReadonlyArray<ShownTool>
    readonly parameters: {
      readonly temperature: number | null
      readonly maxOutputTokens: number | null
      readonly reasoning?: "none" | "low" | "medium" | "high" | undefined
      readonly toolChoice: "auto" | "none"
      readonly leftOut?: LeftOut | undefined
    }
  }
  readonly response: {
    readonly text: string
    readonly toolCalls: ReadonlyArray<{
      readonly id: string
      readonly name: string
      readonly arguments: unknown
      readonly fault?: string | undefined
    }>
  } | null
}

export interface ShownTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: unknown
}

export interface FlowStepAtWork {
  readonly name: string
  readonly iteration: number
}

export interface OpenRequestAnswer {
  readonly request: OpenRequest | null
}

export interface OpenRequest {
  readonly isUnderWay: boolean
  readonly step: number
  readonly afterEvent: number
  readonly model: string | null
  readonly price: ModelPrice | null
  readonly messages: ReadonlyArray<unknown>
  readonly tools: ReadonlyArray<ShownTool> | null
  readonly toolChoice: "auto" | "none"
  readonly estimatedInputTokens: number
  readonly said: string
}

export interface ModelCall {
  readonly number: number
  readonly purpose: "step" | "guard" | "summary" | "notes"
  readonly step: number
  readonly flowStep: FlowStepAtWork | null
  readonly try: number
  readonly provider: string
  readonly model: string
  readonly status: "answered" | "failed"
  readonly finishReason: string | null
  readonly error: string | null
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly isUsageEstimated: boolean
  readonly costUsd: number | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly startedAt: string
  readonly firstOutputMs: number | null
  readonly durationMs: number
  readonly afterEvent: number
  readonly answerEvent: number | null
}

export interface RunObjects {
  readonly read: ReadonlyArray<ReadObject>
  readonly wrote: ReadonlyArray<WrittenObject>
  readonly suggested: ReadonlyArray<SuggestedTask>
  readonly changedGraph: boolean
}

export interface SuggestedTask {
  readonly taskId: string
  readonly number: number
  readonly title: string
  readonly status: "pending" | "completed" | "rejected" | "expired"
}

export interface WrittenObject {
  readonly eventId: string
  readonly entityType: "graphObject" | "relationship"
  readonly entityId: string
  readonly objectType: string
  readonly key: string | null
  readonly version: number
  readonly change: "created" | "updated" | "deleted"
}

export interface ReadObject {
  readonly objectId: string
  readonly type: string
  readonly key: string | null
  readonly version: number
  readonly isOwn: boolean
}

export interface RunStep {
  readonly number: number
  readonly model: string
  readonly modelCalls: ReadonlyArray<number>
  readonly flowStep: FlowStepAtWork | null
  readonly status: "answered" | "failed"
  readonly error: string | null
  readonly text: string
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly startedAt: string
  readonly modelMs: number
  readonly toolCalls: ReadonlyArray<StepCall>
}

export interface StepCall {
  readonly callId: string
  readonly tool: string
  readonly status: "pending" | "started" | "completed" | "failed" | "refused" | "unknown" | "abandoned"
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly durationMs: number | null
}

export interface ModelsState {
  readonly default: {
    readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
    readonly name: string
    readonly price: ModelPrice | null
  } | null
  readonly defaultMissing: string | null
  readonly providers: ReadonlyArray<ProviderState>
  readonly prices: ReadonlyArray<KnownPrice>
}

export interface KnownPrice {
  readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
  readonly name: string
  readonly price: ModelPrice
  readonly source: string
  readonly asOf: string | null
}

export interface ProviderState {
  readonly provider: "openai" | "anthropic" | "google" | "google-vertex" | "azure" | "amazon-bedrock" | "mistral" | "openrouter" | "openai-compatible" | "scripted" | "replay"
  readonly defaultModel: string
  readonly missing: string | null
}

export interface Run {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly agentVersion: number
  readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
  readonly pauseReason: "stepLimit" | "timeout" | "budget" | "question" | "subAgents" | "killSwitch" | "toolResult" | null
  readonly waitingFor: RunWait | null
  readonly trigger: {
    readonly type: "reaction" | "schedule" | "manual" | "webhook" | "context" | "agent" | "mcpEvent"
    readonly input?: unknown
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly dueAt?: string | undefined
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly madeUpUntil?: string | undefined
    readonly delivery?: {
      readonly webhookId: string
      readonly id: string
    } | undefined
    readonly mcpEvents?: ReadonlyArray<TriggeringOccurrence> | undefined
    readonly events?: ReadonlyArray<{
      readonly id: string
      readonly type: string
      readonly entityType?: "graphObject" | "relationship" | undefined
      readonly objectId: string
      readonly objectType: string
      readonly version: number
    }> | undefined
  }
  readonly subject: NamedObject | null
  readonly summary: string | null
  readonly isSummaryTruncated: boolean
  readonly errorMessage: string | null
  readonly failureReason: "model" | "contentFilter" | "emptyAnswer" | "prompt" | "guard" | "doomLoop" | "refused" | "noProgress" | "noWorker" | null
  readonly finishReason: string | null
  readonly cancelledBy: string | null
  readonly stepCount: number
  readonly attempt: number
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number
  readonly total: {
    readonly usage: {
      readonly inputTokens: number
      readonly outputTokens: number
      readonly cachedInputTokens?: number | undefined
      readonly cacheWriteTokens?: number | undefined
      readonly reasoningTokens?: number | undefined
    }
    readonly costUsd: number
  }
  readonly limits: RunLimits
  readonly parentRunId: string | null
  readonly backtestId: string | null
  readonly spawnDepth: number
  readonly model: string | null
  readonly rootEventId: string | null
  readonly depth: number
  readonly contextName: string
  readonly owner: string | null
  readonly taintedBy: ReadonlyArray<Taint>
  readonly missingTools: ReadonlyArray<string>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly durationMs: number | null
}

export interface RunLimits {
  readonly maxSteps: number | null
  readonly timeoutMs: number | null
  readonly maxTokens: number | null
  readonly maxCostUsd: number | null
}

export interface TriggeringOccurrence {
  readonly id: string
  readonly server: string
  readonly name: string
  readonly eventId: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
}

export interface RunWait {
  readonly reason: "provider"
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly since: string
  readonly message: string
  readonly nextTryAt: string | null
}

export interface AnswerInput {
  readonly answer: string
  readonly taskId?: string | null | undefined
}

export interface ResumeInput {
  readonly message?: string | null | undefined
  readonly maxSteps?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly maxTokens?: number | null | undefined
  readonly maxCostUsd?: number | null | undefined
}

export interface SignInLink {
  readonly url: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly expiresAt: string
}

export interface McpServer {
  readonly id: string
  readonly version: number
  readonly name: string
  readonly transport: StdioTransport | HttpTransport
  readonly authorization?: OAuthAuthorization | undefined
  readonly allowedTools: ReadonlyArray<string>
  readonly idempotentTools: ReadonlyArray<string>
  readonly allowedEvents?: ReadonlyArray<string> | undefined
  readonly callTimeoutMs: number
  readonly untrusted?: boolean | undefined
  readonly allowUntrusted?: boolean | undefined
  readonly enabled: boolean
  readonly tools: ReadonlyArray<{
    readonly name: string
    readonly offeredName: string
    readonly description: string | null
    readonly inputSchema: JsonObject
    readonly isReadOnly: boolean
    readonly isIdempotent: boolean
    readonly hash: string
    readonly changedAt: string | null
    readonly isAllowed: boolean
  }>
  readonly pinnedAt: string | null
  readonly lastError: string | null
  readonly signIn: McpSignIn | null
  readonly eventSources: ReadonlyArray<EventSource>
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface EventSource {
  readonly name: string
  readonly arguments: unknown
  readonly status: "beginning" | "listening" | "failing"
  readonly agents: ReadonlyArray<string>
  readonly polledAt: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly nextPollAt: string
  readonly failedSince: string | null
  readonly lastFault: string | null
  readonly truncatedAt: string | null
  readonly lastOccurrence: {
    readonly id: string
    readonly eventId: string
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
  } | null
}

export interface McpSignIn {
  readonly per: "server" | "member"
  readonly status: "signedIn" | "signedOut"
  readonly detail: string | null
  readonly issuer: string | null
  readonly scopes: string | null
  readonly signedInBy: string | null
  readonly signedInAt: string | null
  readonly expiresAt: string | null
}

export interface OAuthAuthorization {
  readonly type: "oauth"
  readonly per?: "server" | "member" | null | undefined
  readonly clientId?: string | null | undefined
  readonly clientSecret?: SecretReference | null | undefined
  readonly scopes?: ReadonlyArray<string> | null | undefined
}

export interface SecretReference {
  readonly secret: string
  readonly prefix?: string | null | undefined
}

export interface HttpTransport {
  readonly type: "http"
  readonly url: string
  readonly headers?: { readonly [name: string]: string | SecretReference } | null | undefined
}

export interface StdioTransport {
  readonly type: "stdio"
  readonly command: string
  readonly args?: ReadonlyArray<string> | null | undefined
  readonly env?: { readonly [name: string]: string | SecretReference } | null | undefined
}

export interface McpServerChange {
  readonly name?: string | undefined
  readonly transport?: StdioTransport | HttpTransport | undefined
  readonly authorization?: OAuthAuthorization | null | undefined
  readonly allowedTools?: ReadonlyArray<string> | null | undefined
  readonly idempotentTools?: ReadonlyArray<string> | null | undefined
  readonly allowedEvents?: ReadonlyArray<string> | null | undefined
  readonly callTimeoutMs?: number | null | undefined
  readonly untrusted?: boolean | null | undefined
  readonly allowUntrusted?: boolean | null | undefined
  readonly enabled?: boolean | null | undefined
  readonly expectedVersion?: number | null | undefined
}

export interface McpServerInput {
  readonly name: string
  readonly transport: StdioTransport | HttpTransport
  readonly authorization?: OAuthAuthorization | null | undefined
  readonly allowedTools?: ReadonlyArray<string> | null | undefined
  readonly idempotentTools?: ReadonlyArray<string> | null | undefined
  readonly allowedEvents?: ReadonlyArray<string> | null | undefined
  readonly callTimeoutMs?: number | null | undefined
  readonly untrusted?: boolean | null | undefined
  readonly allowUntrusted?: boolean | null | undefined
  readonly enabled?: boolean | null | undefined
}

export interface Agent {
  readonly id: string
  readonly version: number
  readonly name: string
  readonly role: string | null
  readonly prompt: string
  readonly systemPrompt: string | null
  readonly model: ModelConfig | null
  readonly flowType: "single" | "sequential" | "loop"
  readonly steps: ReadonlyArray<FlowStep>
  readonly maxIterations: number | null
  readonly tools: ReadonlyArray<string>
  readonly triggerType: "reaction" | "schedule" | "manual" | "webhook"
  readonly cronSchedule: string | null
  readonly timezone: string
  readonly reactionConfig: ReactionConfig | null
  readonly executionMode: "suggest" | "execute" | "hybrid"
  readonly hybridPolicy: HybridPolicy | null
  readonly capabilities: Capabilities | null
  readonly maxSteps: number | null
  readonly defaultTimeoutMs: number | null
  readonly budget: Budget | null
  readonly subAgents: ReadonlyArray<string>
  readonly repeatableTools: ReadonlyArray<string>
  readonly reducer: {
    readonly type: "whole"
  } | {
    readonly type: "truncating"
    readonly maxMessages: number | null
    readonly maxTokens: number | null
  } | {
    readonly type: "summarizing"
    readonly maxTokens: number
    readonly keepTokens: number
    readonly instructions?: string | undefined
  } | null
  readonly catchUp: "none" | "one" | "all"
  readonly overlapPolicy: "skip" | "allow"
  readonly retryPolicy: RetryPolicy | null
  readonly reviewPolicy: ReviewPolicy | null
  readonly maxPendingRuns: number
  readonly disableAfterFailures: number
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly nextFireAt: string | null
  readonly warnings: ReadonlyArray<AgentWarning>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface AgentWarning {
  readonly code: "noTools" | "nothingAllowed" | "unknownServer" | "unknownTool" | "tooManyTools"
  readonly pointer: string
  readonly message: string
}

export interface ReviewPolicy {
  readonly maxPending?: number | null | undefined
  readonly expiresAfterMs?: number | null | undefined
  readonly assignee?: string | null | undefined
}

export interface RetryPolicy {
  readonly maxAttempts: number
  readonly backoffMs: number
}

export interface Budget {
  readonly perRun?: SpendingLimit | null | undefined
  readonly perDay?: SpendingLimit | null | undefined
}

export interface SpendingLimit {
  readonly maxTokens?: number | null | undefined
  readonly maxCostUsd?: number | null | undefined
}

export interface Capabilities {
  readonly canCreateObjects?: boolean | null | undefined
  readonly canUpdateObjects?: boolean | null | undefined
  readonly canDeleteObjects?: boolean | null | undefined
  readonly canCreateRelationships?: boolean | null | undefined
  readonly canUpdateRelationships?: boolean | null | undefined
  readonly canDeleteRelationships?: boolean | null | undefined
  readonly allowedObjectTypes?: ReadonlyArray<string> | null | undefined
}

export interface HybridPolicy {
  readonly confidenceThreshold?: number | null | undefined
  readonly alwaysSuggest?: ReadonlyArray<"create" | "update" | "delete" | "createRelationship" | "updateRelationship" | "deleteRelationship"> | null | undefined
  readonly promotion?: PromotionPolicy | null | undefined
}

export interface PromotionPolicy {
  readonly minReviews: number
  readonly minRate: number
}

export interface ReactionConfig {
  readonly objectTypes: ReadonlyArray<string>
  readonly relationshipTypes: ReadonlyArray<string> | null
  readonly events: ReadonlyArray<"created" | "updated" | "deleted">
  readonly mcpEvents?: ReadonlyArray<McpEventListener> | undefined
  readonly where: ReactionFilter | null
  readonly concurrencyStrategy: "skip" | "parallel" | "latest" | "queue"
  readonly ignoreSelfTriggered: boolean
  readonly ignoreAgentTriggered: boolean
  readonly debounceMs: number
  readonly maxWaitMs: number | null
  readonly batchSize: number
  readonly rateLimit: RateLimit | null
  readonly maxConcurrency: number | null
}

export interface RateLimit {
  readonly maxRuns: number
  readonly perSeconds: number
}

export interface ReactionFilter {
  readonly properties?: ReadonlyArray<PropertyFilter> | null | undefined
  readonly changedProperties?: ReadonlyArray<string> | null | undefined
}

export interface PropertyFilter {
  readonly property: string
  readonly op: "eq" | "ne" | "in" | "gt" | "gte" | "lt" | "lte" | "contains" | "startsWith" | "exists"
  readonly value: unknown
}

export interface McpEventListener {
  readonly server: string
  readonly name: string
  readonly arguments?: JsonObject | null | undefined
}

export interface AgentVersionDiff {
  readonly agentId: string
  readonly from: number | null
  readonly to: number
  readonly changes: ReadonlyArray<JsonDifference>
}

export interface JsonDifference {
  readonly pointer: string
  readonly before?: unknown
  readonly after?: unknown
}

export interface AgentVersionRecord {
  readonly version: number
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly restoredFrom: number | null
  readonly agentId: string
  readonly definition: {
    readonly name: string
    readonly role: string | null
    readonly prompt: string
    readonly systemPrompt: string | null
    readonly model: ModelConfig | null
    readonly flowType: "single" | "sequential" | "loop"
    readonly steps: ReadonlyArray<FlowStep>
    readonly maxIterations: number | null
    readonly tools: ReadonlyArray<string>
    readonly triggerType: "reaction" | "schedule" | "manual" | "webhook"
    readonly cronSchedule: string | null
    readonly timezone: string
    readonly reactionConfig: ReactionConfig | null
    readonly executionMode: "suggest" | "execute" | "hybrid"
    readonly hybridPolicy: HybridPolicy | null
    readonly capabilities: Capabilities | null
    readonly maxSteps: number | null
    readonly defaultTimeoutMs: number | null
    readonly budget: Budget | null
    readonly subAgents: ReadonlyArray<string>
    readonly repeatableTools: ReadonlyArray<string>
    readonly reducer: {
      readonly type: "whole"
    } | {
      readonly type: "truncating"
      readonly maxMessages: number | null
      readonly maxTokens: number | null
    } | {
      readonly type: "summarizing"
      readonly maxTokens: number
      readonly keepTokens: number
      readonly instructions?: string | undefined
    } | null
    readonly catchUp: "none" | "one" | "all"
    readonly overlapPolicy: "skip" | "allow"
    readonly retryPolicy: RetryPolicy | null
    readonly reviewPolicy: ReviewPolicy | null
    readonly maxPendingRuns: number
    readonly disableAfterFailures: number
    readonly enabled: boolean
  }
}

export interface AgentVersionSummary {
  readonly version: number
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly restoredFrom: number | null
  readonly changed: ReadonlyArray<string>
}

export interface AppliedAgent {
  readonly name: string
  readonly outcome: "created" | "updated" | "unchanged" | "deleted"
  readonly id: string | null
  readonly version: number
  readonly changes: ReadonlyArray<JsonDifference>
  readonly warnings: ReadonlyArray<AgentWarning>
}

export interface ApplyInput {
  readonly agents: ReadonlyArray<AgentInput>
  readonly dryRun?: boolean | null | undefined
  readonly prune?: boolean | null | undefined
}

export interface AgentInput {
  readonly name: string
  readonly role?: string | null | undefined
  readonly prompt: string
  readonly systemPrompt?: string | null | undefined
  readonly model?: ModelConfig | null | undefined
  readonly flowType?: "single" | "sequential" | "loop" | null | undefined
  readonly steps?: ReadonlyArray<FlowStepInput> | null | undefined
  readonly maxIterations?: number | null | undefined
  readonly tools?: ReadonlyArray<string> | null | undefined
  readonly triggerType: "reaction" | "schedule" | "manual" | "webhook"
  readonly cronSchedule?: string | null | undefined
  readonly timezone?: string | null | undefined
  readonly reactionConfig?: {
    readonly objectTypes: ReadonlyArray<string>
    readonly relationshipTypes?: ReadonlyArray<string> | null | undefined
    readonly events: ReadonlyArray<"created" | "updated" | "deleted">
    readonly mcpEvents?: ReadonlyArray<McpEventListener> | null | undefined
    readonly where?: ReactionFilter | null | undefined
    readonly concurrencyStrategy?: "skip" | "parallel" | "latest" | "queue" | null | undefined
    readonly ignoreSelfTriggered?: boolean | null | undefined
    readonly ignoreAgentTriggered?: boolean | null | undefined
    readonly debounceMs?: number | null | undefined
    readonly maxWaitMs?: number | null | undefined
    readonly batchSize?: number | null | undefined
    readonly rateLimit?: RateLimit | null | undefined
    readonly maxConcurrency?: number | null | undefined
  } | null | undefined
  readonly executionMode?: "suggest" | "execute" | "hybrid" | null | undefined
  readonly hybridPolicy?: HybridPolicy | null | undefined
  readonly capabilities?: Capabilities | null | undefined
  readonly maxSteps?: number | null | undefined
  readonly defaultTimeoutMs?: number | null | undefined
  readonly budget?: Budget | null | undefined
  readonly subAgents?: ReadonlyArray<string> | null | undefined
  readonly repeatableTools?: ReadonlyArray<string> | null | undefined
  readonly reducer?: {
    readonly type: "whole"
  } | {
    readonly type: "truncating"
    readonly maxMessages: number | null
    readonly maxTokens: number | null
  } | {
    readonly type: "summarizing"
    readonly maxTokens: number
    readonly keepTokens: number
    readonly instructions?: string | undefined
  } | null | undefined
  readonly catchUp?: "none" | "one" | "all" | null | undefined
  readonly overlapPolicy?: "skip" | "allow" | null | undefined
  readonly retryPolicy?: RetryPolicy | null | undefined
  readonly reviewPolicy?: ReviewPolicy | null | undefined
  readonly maxPendingRuns?: number | null | undefined
  readonly disableAfterFailures?: number | null | undefined
  readonly enabled?: boolean | null | undefined
}

export interface BatchTriggered {
  readonly queued: ReadonlyArray<{
    readonly id: string
    readonly entryId: string
    readonly runId: string | null
    readonly reason: string | null
  }>
  readonly skipped: ReadonlyArray<{
    readonly id: string
    readonly reason: string
  }>
}

export interface BatchTriggerInput {
  readonly objectIds?: ReadonlyArray<string> | null | undefined
  readonly eventIds?: ReadonlyArray<string> | null | undefined
}

export interface PendingEvent {
  readonly objectId: string
  readonly objectType: string
  readonly subject: NamedObject
  readonly version: number
  readonly eventId: string
  readonly entryId: string | null
  readonly why: "skipped" | "failed" | "abandoned" | "refused" | "notEnabled" | "notConcerned"
  readonly reason: string
}

export interface Redriven {
  readonly redriven: ReadonlyArray<{
    readonly entryId: string
    readonly newEntryId: string
    readonly attempt: number
  }>
  readonly skipped: ReadonlyArray<{
    readonly entryId: string
    readonly reason: string
  }>
}

export interface RedriveInput {
  readonly ids?: ReadonlyArray<string> | null | undefined
}

export interface ProcessingEntry {
  readonly id: string
  readonly agentId: string
  readonly entityType: "graphObject" | "relationship" | "mcpEvent"
  readonly graphObjectId: string
  readonly subject: NamedObject | null
  readonly objectVersion: number
  readonly eventType: "created" | "updated" | "deleted" | "occurred"
  readonly eventId: string
  readonly attempt: number
  readonly status: "pending" | "processing" | "completed" | "failed" | "abandoned" | "skipped"
  readonly runId: string | null
  readonly reason: string | null
  readonly dueAt: string | null
  readonly errorMessage: string | null
  readonly failureReason: "model" | "contentFilter" | "emptyAnswer" | "prompt" | "guard" | "doomLoop" | "refused" | "noProgress" | "noWorker" | null
  readonly deadLetteredAt: string | null
  readonly startedAt: string | null
  readonly completedAt: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface ReactionQueue {
  readonly id: string
  readonly agentName: string
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly objectTypes: ReadonlyArray<string>
  readonly waiting: number
  readonly waitingSince: string | null
  readonly working: number
  readonly deadLetters: number
  readonly newest: {
    readonly status: "pending" | "processing" | "completed" | "failed" | "abandoned" | "skipped"
    readonly reason: string | null
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
  } | null
}

export interface Promotion {
  readonly id: string
  readonly agentId: string
  readonly agentVersion: number
  readonly operation: "create" | "update" | "delete" | "createRelationship" | "updateRelationship" | "deleteRelationship"
  readonly objectType: string
  readonly reviews: number
  readonly acceptanceRate: number
  readonly taskId: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly promotedAt: string
  readonly endedAt: string | null
  readonly endReason: "reverted" | "reversed" | null
  readonly endedBy: string | null
  readonly note: string | null
}

export interface Reversal {
  readonly reason?: string | null | undefined
}

export interface Autonomy {
  readonly agentId: string
  readonly agentVersion: number
  readonly withoutEffect: string | null
  readonly records: ReadonlyArray<ReviewRecord>
  readonly promotions: ReadonlyArray<Promotion>
  readonly truncated: boolean
}

export interface ReviewRecord {
  readonly agentId: string
  readonly agentVersion: number
  readonly operation: "create" | "update" | "delete" | "createRelationship" | "updateRelationship" | "deleteRelationship"
  readonly objectType: string
  readonly accepted: number
  readonly edited: number
  readonly rejected: number
  readonly expired: number
  readonly reverted: number
  readonly acceptanceRate: number | null
  readonly counting: {
    readonly reviews: number
    readonly acceptanceRate: number | null
  }
  readonly promotionId: string | null
}

export interface UnfinishedRun {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly agentVersion: number
  readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
  readonly pauseReason: "stepLimit" | "timeout" | "budget" | "question" | "subAgents" | "killSwitch" | "toolResult" | null
  readonly waitingFor: RunWait | null
  readonly trigger: {
    readonly type: "reaction" | "schedule" | "manual" | "webhook" | "context" | "agent" | "mcpEvent"
    readonly input?: unknown
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly dueAt?: string | undefined
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly madeUpUntil?: string | undefined
    readonly delivery?: {
      readonly webhookId: string
      readonly id: string
    } | undefined
    readonly mcpEvents?: ReadonlyArray<TriggeringOccurrence> | undefined
    readonly events?: ReadonlyArray<{
      readonly id: string
      readonly type: string
      readonly entityType?: "graphObject" | "relationship" | undefined
      readonly objectId: string
      readonly objectType: string
      readonly version: number
    }> | undefined
  }
  readonly subject: NamedObject | null
  readonly summary: string | null
  readonly isSummaryTruncated: boolean
  readonly errorMessage: string | null
  readonly failureReason: "model" | "contentFilter" | "emptyAnswer" | "prompt" | "guard" | "doomLoop" | "refused" | "noProgress" | "noWorker" | null
  readonly finishReason: string | null
  readonly cancelledBy: string | null
  readonly stepCount: number
  readonly attempt: number
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number
  readonly total: {
    readonly usage: {
      readonly inputTokens: number
      readonly outputTokens: number
      readonly cachedInputTokens?: number | undefined
      readonly cacheWriteTokens?: number | undefined
      readonly reasoningTokens?: number | undefined
    }
    readonly costUsd: number
  }
  readonly limits: RunLimits
  readonly parentRunId: string | null
  readonly backtestId: string | null
  readonly spawnDepth: number
  readonly model: string | null
  readonly rootEventId: string | null
  readonly depth: number
  readonly contextName: string
  readonly owner: string | null
  readonly taintedBy: ReadonlyArray<Taint>
  readonly missingTools: ReadonlyArray<string>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly durationMs: number | null
}

export interface AgentModelUse {
  readonly provider: string
  readonly model: string
  readonly requests: number
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly cacheHitRate: number
  readonly costUsd: number | null
  readonly cachedInputCostUsd: number | null
}

export interface AgentDay {
  readonly date: string
  readonly runs: number
  readonly usage: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly cachedInputTokens?: number | undefined
    readonly cacheWriteTokens?: number | undefined
    readonly reasoningTokens?: number | undefined
  }
  readonly costUsd: number
}

export interface SchedulePreview {
  readonly cronSchedule: string
  readonly timezone: string
  readonly catchUp: "none" | "one" | "all"
  readonly overlapPolicy: "skip" | "allow"
  readonly active: boolean
  readonly fires: ReadonlyArray<{
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly at: string
    readonly localTime: string
  }>
  readonly waiting: {
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly from: string
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly until: string
  } | null
}

export interface AgentChange {
  readonly name?: string | undefined
  readonly role?: string | null | undefined
  readonly prompt?: string | undefined
  readonly systemPrompt?: string | null | undefined
  readonly model?: ModelConfig | null | undefined
  readonly flowType?: "single" | "sequential" | "loop" | null | undefined
  readonly steps?: ReadonlyArray<FlowStepInput> | null | undefined
  readonly maxIterations?: number | null | undefined
  readonly tools?: ReadonlyArray<string> | null | undefined
  readonly triggerType?: "reaction" | "schedule" | "manual" | "webhook" | undefined
  readonly cronSchedule?: string | null | undefined
  readonly timezone?: string | null | undefined
  readonly reactionConfig?: {
    readonly objectTypes: ReadonlyArray<string>
    readonly relationshipTypes?: ReadonlyArray<string> | null | undefined
    readonly events: ReadonlyArray<"created" | "updated" | "deleted">
    readonly mcpEvents?: ReadonlyArray<McpEventListener> | null | undefined
    readonly where?: ReactionFilter | null | undefined
    readonly concurrencyStrategy?: "skip" | "parallel" | "latest" | "queue" | null | undefined
    readonly ignoreSelfTriggered?: boolean | null | undefined
    readonly ignoreAgentTriggered?: boolean | null | undefined
    readonly debounceMs?: number | null | undefined
    readonly maxWaitMs?: number | null | undefined
    readonly batchSize?: number | null | undefined
    readonly rateLimit?: RateLimit | null | undefined
    readonly maxConcurrency?: number | null | undefined
  } | null | undefined
  readonly executionMode?: "suggest" | "execute" | "hybrid" | null | undefined
  readonly hybridPolicy?: HybridPolicy | null | undefined
  readonly capabilities?: Capabilities | null | undefined
  readonly maxSteps?: number | null | undefined
  readonly defaultTimeoutMs?: number | null | undefined
  readonly budget?: Budget | null | undefined
  readonly subAgents?: ReadonlyArray<string> | null | undefined
  readonly repeatableTools?: ReadonlyArray<string> | null | undefined
  readonly reducer?: {
    readonly type: "whole"
  } | {
    readonly type: "truncating"
    readonly maxMessages: number | null
    readonly maxTokens: number | null
  } | {
    readonly type: "summarizing"
    readonly maxTokens: number
    readonly keepTokens: number
    readonly instructions?: string | undefined
  } | null | undefined
  readonly catchUp?: "none" | "one" | "all" | null | undefined
  readonly overlapPolicy?: "skip" | "allow" | null | undefined
  readonly retryPolicy?: RetryPolicy | null | undefined
  readonly reviewPolicy?: ReviewPolicy | null | undefined
  readonly maxPendingRuns?: number | null | undefined
  readonly disableAfterFailures?: number | null | undefined
  readonly enabled?: boolean | null | undefined
  readonly expectedVersion?: number | null | undefined
}

export interface ScheduleFires {
  readonly fires: ReadonlyArray<{
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly at: string
    readonly localTime: string
  }>
}

export interface AgentHealth {
  readonly id: string
  readonly agentName: string
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly triggerType: "reaction" | "schedule" | "manual" | "webhook"
  readonly modelMissing: string | null
  readonly nextFireAt: string | null
  readonly latest: ReadonlyArray<{
    readonly id: string
    readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
  }>
  readonly weekCostUsd: number
  readonly acceptance: {
    readonly decided: number
    readonly rate: number | null
  }
}

export interface Explanation {
  readonly agentId: string
  readonly agentName: string
  readonly agentVersion: number | null
  readonly eventId: string
  readonly outcome: "woke" | "refused" | "skipped" | "waiting"
  readonly rule: string | null
  readonly reason: string
  readonly entry: ProcessingEntry | null
  readonly run: {
    readonly id: string
    readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"
  } | null
}

export type RestoreLine = {
  readonly type: "progress"
  readonly done: number
  readonly total: number
} | {
  readonly type: "finished"
  readonly project: Project
  readonly rows: number
  readonly keptIds: boolean
  readonly disabledAgents: number
} | {
  readonly type: "failed"
  readonly message: string
}

export interface Project {
  readonly id: string
  readonly name: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface ObjectLine {
  readonly id?: string | null | undefined
  readonly type: string
  readonly key?: string | null | undefined
  readonly properties?: Properties | null | undefined
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
}

export interface RelationshipLine {
  readonly relationship: {
    readonly type: string
    readonly from: {
      readonly type: string
      readonly key: string
    } | string
    readonly to: {
      readonly type: string
      readonly key: string
    } | string
  }
  readonly properties?: Properties | null | undefined
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
}

export interface Import {
  readonly id: string
  readonly format: "jsonl" | "csv"
  readonly name: string | null
  readonly status: "running" | "finished" | "interrupted"
  readonly attempt: number
  readonly lines: number
  readonly bytes: number
  readonly digest: string
  readonly counts: {
    readonly created: number
    readonly updated: number
    readonly unchanged: number
    readonly relationshipsCreated: number
    readonly relationshipsUpdated: number
    readonly relationshipsUnchanged: number
    readonly failed: number
  }
  readonly badLines: ReadonlyArray<{
    readonly line: number
    readonly message: string
  }>
  readonly errorMessage: string | null
  readonly createdBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export type ImportLine = {
  readonly type: "started"
  readonly importId: string
  readonly skippedLines: number
} | {
  readonly type: "progress"
  readonly done: number
  readonly total: number | null
  readonly lines?: number | undefined
  readonly counts?: {
    readonly created: number
    readonly updated: number
    readonly unchanged: number
    readonly relationshipsCreated: number
    readonly relationshipsUpdated: number
    readonly relationshipsUnchanged: number
    readonly failed: number
  } | undefined
} | {
  readonly type: "badLine"
  readonly line: number
  readonly message: string
} | {
  readonly type: "finished"
  readonly importId?: string | undefined
  readonly lines?: number | undefined
  readonly created: number
  readonly updated: number
  readonly deleted: number
  readonly unchanged: number
  readonly relationshipsCreated: number
  readonly relationshipsUpdated: number
  readonly relationshipsUnchanged?: number | undefined
  readonly relationshipsDeleted: number
  readonly failed?: number | undefined
} | {
  readonly type: "failed"
  readonly message: string
  readonly resume?: string | undefined
}

export interface Chain {
  readonly rootEventId: string
  readonly rootEvent: GraphEvent | null
  readonly use: ChainUse
  readonly limits: ChainLimits
  readonly counts: {
    readonly events: number
    readonly runs: number
    readonly tasks: number
    readonly refusals: number
  }
  readonly stops: ReadonlyArray<{
    readonly eventId: string
    readonly agentId: string
    readonly rule?: string | undefined
    readonly reason: string
  }>
  readonly items: ReadonlyArray<ChainLink>
  readonly nextCursor: string | null
}

export type ChainLink = {
  readonly type: "event"
  readonly id: string
  readonly event: GraphEvent
  readonly undoneBy: {
    readonly taskId: string
    readonly number: number
  } | null
} | {
  readonly type: "run"
  readonly id: string
  readonly run: Run
} | {
  readonly type: "task"
  readonly id: string
  readonly task: ChainTask
}

export interface ChainTask {
  readonly id: string
  readonly number: number
  readonly type: "object_create_suggestion" | "object_update_suggestion" | "object_delete_suggestion" | "relationship_create_suggestion" | "relationship_update_suggestion" | "relationship_delete_suggestion" | "undo" | "question" | "todo" | "promotion"
  readonly status: "pending" | "completed" | "rejected" | "expired"
  readonly title: string
  readonly runId: string | null
  readonly depth: number
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly resolvedAt: string | null
}

export interface GraphEvent {
  readonly id: string
  readonly position: number | null
  readonly entityType: "graphObject" | "relationship"
  readonly objectType: string
  readonly entityId: string
  readonly version: number
  readonly type: "created" | "updated" | "deleted"
  readonly changedProperties: ReadonlyArray<string>
  readonly snapshot: unknown
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly approvedBy: string | null
  readonly runId: string | null
  readonly toolCallId: string | null
  readonly taskId: string | null
  readonly rootEventId: string
  readonly depth: number
  readonly undoes?: ReadonlyArray<string> | undefined
  readonly refusals: ReadonlyArray<NotedRefusal>
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface NotedRefusal {
  readonly agentId: string
  readonly rule?: string | undefined
  readonly reason: string
}

export interface ChainLimits {
  readonly maxDepth: number
  readonly maxRuns: number
  readonly maxTokens: number | null
  readonly maxCostUsd: number | null
}

export interface ChainUse {
  readonly depth: number
  readonly runs: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

export interface ChainSummary {
  readonly id: string
  readonly rootEvent: GraphEvent | null
  readonly agents: ReadonlyArray<string>
  readonly use: ChainUse
  readonly events: number
  readonly runs: number
  readonly openRuns: number
  readonly beganAt: string | null
  readonly isStopped: boolean
}

export interface RelationshipVersion {
  readonly version: number
  readonly type: "created" | "updated" | "deleted"
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly approvedBy: string | null
  readonly runId: string | null
  readonly toolCallId: string | null
  readonly taskId: string | null
  readonly eventId: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface RelationshipPatch {
  readonly properties: Properties
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
  readonly expectedVersion?: number | null | undefined
}

export interface RelationshipInput {
  readonly type: string
  readonly fromId: string
  readonly toId: string
  readonly properties?: Properties | null | undefined
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
}

export interface Purge {
  readonly id: string
  readonly entityType: "graphObject" | "relationship"
  readonly entityId: string
  readonly objectType: string
  readonly purgedBy: string | null
  readonly versions: number
  readonly relationships: number
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly purgedAt: string
}

export interface Provenance {
  readonly objectId: string
  readonly type: string
  readonly key: string | null
  readonly version: number
  readonly deleted: {
    readonly eventId: string
    readonly actorType: "user" | "agent" | "system"
    readonly actorId: string | null
    readonly agentName: string | null
    readonly approvedBy: string | null
    readonly runId: string | null
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
  } | null
  readonly properties: ReadonlyArray<PropertyProvenance>
}

export interface PropertyProvenance {
  readonly property: string
  readonly value: unknown
  readonly removed: boolean
  readonly version: number
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly agentName: string | null
  readonly approvedBy: string | null
  readonly toolCall: {
    readonly id: string
    readonly tool: string
    readonly reasoning: string | null
    readonly confidence: number | null
    readonly promotionId: string | null
  } | null
  readonly task: {
    readonly id: string
    readonly number: number
    readonly type: "object_create_suggestion" | "object_update_suggestion" | "object_delete_suggestion" | "relationship_create_suggestion" | "relationship_update_suggestion" | "relationship_delete_suggestion" | "undo" | "question" | "todo" | "promotion"
    readonly title: string
  } | null
  readonly chain: ReadonlyArray<ProvenanceHop>
  readonly rootEventId: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface ProvenanceHop {
  readonly eventId: string
  readonly position: number | null
  readonly type: "created" | "updated" | "deleted"
  readonly entityType: "graphObject" | "relationship"
  readonly objectType: string
  readonly entityId: string
  readonly key: string | null
  readonly version: number
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly agentName: string | null
  readonly approvedBy: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly run: {
    readonly id: string
    readonly agentId: string
    readonly agentName: string
    readonly agentVersion: number
    readonly model: string | null
    readonly trigger: string
    readonly triggeredBy: string | null
  } | null
}

export interface Neighborhood {
  readonly objects: ReadonlyArray<{
    readonly id: string
    readonly type: string
    readonly key: string | null
    readonly properties: Properties
    readonly untrusted: ReadonlyArray<string>
    readonly version: number
    readonly actorType: "user" | "agent" | "system"
    readonly actorId: string | null
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly createdAt: string
    /** An instant, ISO 8601 in UTC with milliseconds */
    readonly updatedAt: string
    readonly distance: number
  }>
  readonly relationships: ReadonlyArray<Relationship>
  readonly truncated: boolean
}

export interface ObjectVersion {
  readonly version: number
  readonly type: "created" | "updated" | "deleted"
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly approvedBy: string | null
  readonly runId: string | null
  readonly toolCallId: string | null
  readonly taskId: string | null
  readonly eventId: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
}

export interface ObjectPatch {
  readonly properties: Properties
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
  readonly expectedVersion?: number | null | undefined
}

export interface ObjectInput {
  readonly type: string
  readonly key?: string | null | undefined
  readonly properties?: Properties | null | undefined
  readonly untrusted?: boolean | ReadonlyArray<string> | null | undefined
}

export interface ProjectHealth {
  readonly state: "ok" | "warn" | "fault"
  readonly verdict: string
  readonly nextStep: HealthFinding | null
  readonly findings: ReadonlyArray<HealthFinding>
}

export interface HealthFinding {
  readonly check: string
  readonly state: "ok" | "warn" | "fault"
  readonly detail: string
  readonly fix: string | null
  readonly part: "flow" | "execution" | "liveness"
  readonly said: string | null
  readonly remedy: string | null
  readonly subject: {
    readonly type: "agent" | "deadLetters" | "mcpServer" | "models" | "killSwitch" | "runs" | "tasks" | "server"
    readonly id: string | null
    readonly name: string | null
  } | null
}

export interface KillSwitch {
  readonly stopped: Stop | null
}

export interface Stop {
  readonly scope: "project" | "server"
  readonly reason: string
  readonly stoppedBy: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly stoppedAt: string
}

export interface KillSwitchInput {
  readonly stopped: boolean
  readonly reason?: string | null | undefined
}

export interface Session {
  readonly id: string
  readonly browser: string | null
  readonly isCurrent: boolean
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
}

export interface NewToken {
  readonly id: string
  readonly name: string | null
  readonly userId: string
  readonly role: "viewer" | "editor" | "reviewer" | "admin"
  readonly projectIds: ReadonlyArray<string>
  readonly createdBy: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
  readonly token: string
}

export interface Token {
  readonly id: string
  readonly name: string | null
  readonly userId: string
  readonly role: "viewer" | "editor" | "reviewer" | "admin"
  readonly projectIds: ReadonlyArray<string>
  readonly createdBy: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
}

export interface Member {
  readonly userId: string
  readonly role: "viewer" | "editor" | "reviewer" | "admin"
  readonly addedBy: string | null
  readonly changedBy: string | null
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly updatedAt: string
}

export interface ProjectSettings {
  readonly chainLimits: ChainLimits
}

export interface ProjectSettingsPatch {
  readonly chainLimits?: ChainLimitsPatch | null | undefined
}

export interface ChainLimitsPatch {
  readonly maxDepth?: number | null | undefined
  readonly maxRuns?: number | null | undefined
  readonly maxTokens?: number | null | undefined
  readonly maxCostUsd?: number | null | undefined
}

export interface ProjectState {
  readonly id: string
  readonly name: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly createdAt: string
  readonly stopped: Stop | null
}

export interface Me {
  readonly userId: string
  readonly role: "viewer" | "editor" | "reviewer" | "admin"
  readonly projectIds: ReadonlyArray<string> | null
  readonly roles: { readonly [name: string]: "viewer" | "editor" | "reviewer" | "admin" } | null
  readonly advice?: string | null | undefined
}

export interface TextDeltaEvent {
  readonly type: "TextDeltaEvent"
  readonly id: string
  /** An instant, ISO 8601 in UTC with milliseconds */
  readonly timestamp: string
  readonly agentName: string
  readonly parentEventId: string | null
  readonly triggersAgentTurn: false
  readonly delta: string
}

/** What the server refuses with, by the name of the problem. */
export interface Problems {
  readonly "malformed-request": MalformedRequest
  readonly unauthorized: Unauthorized
  readonly forbidden: Forbidden
  readonly "foreign-page": ForeignPage
  readonly "origin-not-allowed": {
    readonly type: "/problems/origin-not-allowed"
    readonly status: 403
    readonly title: string
    readonly detail?: string | undefined
    readonly instance?: string | undefined
  }
  readonly "not-found": NotFound
  readonly "method-not-allowed": {
    readonly type: "/problems/method-not-allowed"
    readonly status: 405
    readonly title: string
    readonly detail?: string | undefined
    readonly instance?: string | undefined
  }
  readonly conflict: Conflict
  readonly "precondition-failed": PreconditionFailed
  readonly "body-too-large": BodyTooLarge
  readonly "invalid-input": InvalidInput
  readonly "too-many-requests": TooManyRequests
  readonly "server-fault": ServerFault
  readonly unavailable: Unavailable
}

/** Every call of the contract, grouped as there. */
export interface Calls {
  readonly system: {
    /** Tells that the program answers. */
    readonly health: (options?: CallOptions) => Promise<{
      readonly status: "ok"
      readonly version: string
    }>
    /** Tells whether the server can work, and if not, why. */
    readonly ready: (options?: CallOptions) => Promise<{
      readonly status: "ok"
      readonly version: string
    }>
  }
  readonly metrics: {
    /** Tells the figures of all projects together, as Prometheus reads them. */
    readonly scrape: (options?: CallOptions) => Promise<string>
  }
  readonly projects: {
    /** Tells who is asking, and what they may do where. */
    readonly me: (options?: CallOptions) => Promise<Me>
    /** Lists the projects that the caller sees. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Project>
    /** Makes a project. */
    readonly create: (body: {
      readonly name: string
    }, options?: CallOptions) => Promise<Project>
    /** Reads a project, and what stops its agents. */
    readonly get: (options?: CallOptions) => Promise<ProjectState>
    /** Gives a project another name. */
    readonly rename: (body: {
      readonly name: string
    }, options?: CallOptions) => Promise<Project>
    /** Reads the bounds of a project. */
    readonly settings: (options?: CallOptions) => Promise<ProjectSettings>
    /** Changes the bounds of a project. */
    readonly changeSettings: (body: ProjectSettingsPatch, options?: CallOptions) => Promise<ProjectSettings>
  }
  readonly members: {
    /** Lists the members of a project. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Member>
    /** Lets somebody into a project. */
    readonly add: (body: {
      readonly userId: string
      readonly role: "viewer" | "editor" | "reviewer" | "admin"
    }, options?: CallOptions) => Promise<Member>
    /** Reads one member. */
    readonly get: (userId: string, options?: CallOptions) => Promise<Member>
    /** Gives a member another role. */
    readonly change: (userId: string, body: {
      readonly role: "viewer" | "editor" | "reviewer" | "admin"
    }, options?: CallOptions) => Promise<Member>
    /** Ends a membership. */
    readonly remove: (userId: string, options?: CallOptions) => Promise<undefined>
    /** Makes a link that signs one browser in as a member. */
    readonly invite: (userId: string, options?: CallOptions) => Promise<{
      readonly url: string
      /** An instant, ISO 8601 in UTC with milliseconds */
      readonly expiresAt: string
    }>
  }
  readonly tokens: {
    /** Lists tokens; those of all members for an admin, else one's own. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Token>
    /** Makes a token, and tells its secret this once. */
    readonly create: (body: {
      readonly name: string
      readonly role?: "viewer" | "editor" | "reviewer" | "admin" | null | undefined
      readonly userId?: string | null | undefined
      readonly expiresAt?: string | null | undefined
      readonly projectIds?: ReadonlyArray<string> | null | undefined
    }, options?: CallOptions) => Promise<NewToken>
    /** Ends a token in this project. */
    readonly revoke: (tokenId: string, options?: CallOptions) => Promise<undefined>
  }
  readonly serverTokens: {
    /** Lists the tokens of the server as a whole. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Token>
    /** Makes a token that reaches every project, and tells its secret this once. */
    readonly create: (body: {
      readonly name: string
      readonly role: "viewer" | "editor" | "reviewer" | "admin"
      readonly userId: string
      readonly expiresAt?: string | null | undefined
    }, options?: CallOptions) => Promise<NewToken>
    /** Ends a token of the server. */
    readonly revoke: (tokenId: string, options?: CallOptions) => Promise<undefined>
    /** Makes a link that signs one browser in as the server's admin. */
    readonly loginLink: (options?: CallOptions) => Promise<{
      readonly url: string
      /** An instant, ISO 8601 in UTC with milliseconds */
      readonly expiresAt: string
    }>
  }
  readonly sessions: {
    /** Lists the caller's sessions. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Session>
    /** Signs the caller out everywhere but here. */
    readonly endOthers: (options?: CallOptions) => Promise<{
      readonly ended: number
    }>
    /** Signs the caller out of one browser. */
    readonly end: (sessionId: string, options?: CallOptions) => Promise<undefined>
  }
  readonly killSwitch: {
    /** Reads whether the agents of the server are stopped. */
    readonly ofServer: (options?: CallOptions) => Promise<KillSwitch>
    /** Stops all agents of the server, or lets them work again. */
    readonly setServer: (body: KillSwitchInput, options?: CallOptions) => Promise<KillSwitch>
    /** Reads whether the agents of a project are stopped. */
    readonly ofProject: (options?: CallOptions) => Promise<KillSwitch>
    /** Stops all agents of a project, or lets them work again. */
    readonly setProject: (body: KillSwitchInput, options?: CallOptions) => Promise<KillSwitch>
  }
  readonly health: {
    /** Says how a project fares, what that rests on, and what to do first. */
    readonly get: (options?: CallOptions) => Promise<ProjectHealth>
  }
  readonly objects: {
    /** Finds objects. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly asOf?: string | undefined; readonly type?: string | undefined; readonly key?: string | undefined; readonly query?: string | undefined; readonly where?: ReadonlyArray<PropertyFilter> | undefined; readonly sort?: "createdAt" | "updatedAt" | "relevance" | "name" | "type" | undefined }, options?: CallOptions) => Listing<GraphObject>
    /** Makes an object. */
    readonly create: (body: ObjectInput, options?: CallOptions) => Promise<GraphObject>
    /** Reads an object. */
    readonly get: (objectId: string, query?: { readonly version?: number | undefined; readonly asOf?: string | undefined }, options?: CallOptions) => Promise<GraphObject>
    /** Changes properties of an object. */
    readonly update: (objectId: string, body: ObjectPatch, options?: CallOptions) => Promise<GraphObject>
    /** Deletes an object, or removes it for good. */
    readonly delete: (objectId: string, query?: { readonly purge?: boolean | undefined }, options?: CallOptions) => Promise<undefined>
    /** Brings a deleted object back. */
    readonly restore: (objectId: string, options?: CallOptions) => Promise<GraphObject>
    /** Lists the versions of an object. */
    readonly history: (objectId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ObjectVersion>
    /** Finds what an object is related to. */
    readonly neighbors: (objectId: string, query?: { readonly asOf?: string | undefined; readonly depth?: number | undefined; readonly direction?: "out" | "in" | "both" | undefined; readonly type?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Promise<Neighborhood>
    /** Tells why the properties of an object have their values. */
    readonly provenance: (objectId: string, query?: { readonly property?: string | undefined }, options?: CallOptions) => Promise<Provenance>
    /** Lists what was removed for good. */
    readonly purges: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Purge>
  }
  readonly relationships: {
    /** Finds relationships. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly asOf?: string | undefined; readonly type?: string | undefined; readonly fromId?: string | undefined; readonly toId?: string | undefined; readonly objectId?: string | undefined }, options?: CallOptions) => Listing<Relationship>
    /** Relates two objects. */
    readonly create: (body: RelationshipInput, options?: CallOptions) => Promise<Relationship>
    /** Reads a relationship. */
    readonly get: (relationshipId: string, query?: { readonly version?: number | undefined; readonly asOf?: string | undefined }, options?: CallOptions) => Promise<Relationship>
    /** Changes properties of a relationship. */
    readonly update: (relationshipId: string, body: RelationshipPatch, options?: CallOptions) => Promise<Relationship>
    /** Deletes a relationship, or removes it for good. */
    readonly delete: (relationshipId: string, query?: { readonly purge?: boolean | undefined }, options?: CallOptions) => Promise<undefined>
    /** Brings a deleted relationship back. */
    readonly restore: (relationshipId: string, options?: CallOptions) => Promise<Relationship>
    /** Lists the versions of a relationship. */
    readonly history: (relationshipId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<RelationshipVersion>
  }
  readonly feed: {
    /** Reads committed graph events, a page at a time or as they come. */
    readonly events: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly after?: "start" | "now" | number | undefined; readonly order?: "asc" | "desc" | undefined }, options?: CallOptions) => Listing<GraphEvent>
    /** Reads one event of the graph. */
    readonly get: (eventId: string, options?: CallOptions) => Promise<GraphEvent>
  }
  readonly chains: {
    /** Lists the chains in which an agent ran. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ChainSummary>
    /** Reads a chain from its root event on. */
    readonly get: (rootEventId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Promise<Chain>
  }
  readonly transfer: {
    /** Imports a file, line by line. */
    readonly import: (bytes: Bytes, options: AskingOptions<{ readonly format: "jsonl" | "csv" | "package-lock"; readonly name?: string | undefined; readonly id?: string | undefined; readonly resume?: string | undefined; readonly type?: string | undefined; readonly key?: string | undefined; readonly delimiter?: string | undefined; readonly decimal?: "comma" | "point" | undefined; readonly untrusted?: boolean | undefined }> & { readonly query: { readonly format: "jsonl" | "csv" | "package-lock"; readonly name?: string | undefined; readonly id?: string | undefined; readonly resume?: string | undefined; readonly type?: string | undefined; readonly key?: string | undefined; readonly delimiter?: string | undefined; readonly decimal?: "comma" | "point" | undefined; readonly untrusted?: boolean | undefined } }) => AsyncIterable<ImportLine>
    /** Lists imports. */
    readonly listImports: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Import>
    /** Reads how far an import has come. */
    readonly getImport: (importId: string, options?: CallOptions) => Promise<Import>
    /** Exports the graph as lines. */
    readonly export: (query?: { readonly format?: "jsonl" | undefined; readonly types?: string | ReadonlyArray<string> | undefined; readonly asOf?: string | undefined }, options?: CallOptions) => AsyncIterable<RelationshipLine | ObjectLine>
  }
  readonly dumps: {
    /** Dumps a whole project as lines. */
    readonly dump: (options?: CallOptions) => AsyncIterable<unknown>
    /** Makes a new project of a dump. */
    readonly restoreDump: (bytes: Bytes, options?: AskingOptions<{ readonly id?: string | undefined; readonly name?: string | undefined }>) => AsyncIterable<RestoreLine>
  }
  readonly explanations: {
    /** Tells why an event woke one agent, or did not. */
    readonly explain: (agentId: string, query: { readonly eventId: string }, options?: CallOptions) => Promise<Explanation>
    /** Tells of each agent whether an event woke it. */
    readonly list: (eventId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Explanation>
  }
  readonly agents: {
    /** Lists agents. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Agent>
    /** Defines an agent. */
    readonly create: (body: AgentInput, options?: CallOptions) => Promise<Agent>
    /** Lists agents with how they fare. */
    readonly health: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly agentId?: string | undefined }, options?: CallOptions) => Listing<AgentHealth>
    /** Tells when a schedule would fire. */
    readonly fires: (query: { readonly cronSchedule: string; readonly timezone?: string | undefined }, options?: CallOptions) => Promise<ScheduleFires>
    /** Reads an agent. */
    readonly get: (agentId: string, options?: CallOptions) => Promise<Agent>
    /** Changes an agent, as a new version. */
    readonly update: (agentId: string, body: AgentChange, options?: CallOptions) => Promise<Agent>
    /** Deletes an agent. */
    readonly delete: (agentId: string, options?: CallOptions) => Promise<undefined>
    /** Tells when an agent's schedule fires next. */
    readonly schedule: (agentId: string, options?: CallOptions) => Promise<SchedulePreview>
    /** Tells day by day what an agent's model requests used. */
    readonly usage: (agentId: string, query?: { readonly days?: number | undefined }, options?: CallOptions) => Promise<{
      readonly items: ReadonlyArray<AgentDay>
    }>
    /** Returns what an agent's model requests used, by model. */
    readonly modelUsage: (agentId: string, query?: { readonly days?: number | undefined }, options?: CallOptions) => Promise<{
      readonly items: ReadonlyArray<AgentModelUse>
    }>
    /** Runs an agent now. */
    readonly trigger: (agentId: string, body?: unknown | {
      readonly input?: unknown | null | undefined
    }, options?: AskingOptions<{ readonly wait?: boolean | undefined }>) => Promise<Run | UnfinishedRun>
  }
  readonly autonomy: {
    /** Reads what a version of an agent has earned. */
    readonly get: (agentId: string, query?: { readonly version?: number | undefined }, options?: CallOptions) => Promise<Autonomy>
    /** Takes a promotion back. */
    readonly reverse: (agentId: string, promotionId: string, body: Reversal, options?: CallOptions) => Promise<Promotion>
  }
  readonly processing: {
    /** Lists the agents that react, each with its queue. */
    readonly queues: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ReactionQueue>
    /** Lists an agent's processing entries. */
    readonly log: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly status?: "pending" | "processing" | "completed" | "failed" | "abandoned" | "skipped" | undefined }, options?: CallOptions) => Listing<ProcessingEntry>
    /** Tries an entry again that failed or was abandoned. */
    readonly retry: (agentId: string, entryId: string, options?: CallOptions) => Promise<ProcessingEntry>
    /** Lists entries that nobody tries any more. */
    readonly deadLetters: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ProcessingEntry>
    /** Tries dead letters again. */
    readonly redrive: (agentId: string, body: RedriveInput, options?: CallOptions) => Promise<Redriven>
    /** Lists objects that an agent has not handled. */
    readonly pendingEvents: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<PendingEvent>
    /** Runs an agent for objects or events that it has not handled. */
    readonly batchTrigger: (agentId: string, body: BatchTriggerInput, options?: CallOptions) => Promise<BatchTriggered>
  }
  readonly definitions: {
    /** Makes agents what these definitions say, all or none. */
    readonly apply: (body: ApplyInput, options?: CallOptions) => Promise<{
      readonly dryRun: boolean
      readonly agents: ReadonlyArray<AppliedAgent>
    }>
    /** Lists the versions of an agent. */
    readonly versions: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<AgentVersionSummary>
    /** Reads one version of an agent. */
    readonly version: (agentId: string, version: string, options?: CallOptions) => Promise<AgentVersionRecord>
    /** Tells what a version of an agent changed. */
    readonly diff: (agentId: string, version: string, query?: { readonly from?: number | undefined }, options?: CallOptions) => Promise<AgentVersionDiff>
    /** Makes an old version of an agent the present one. */
    readonly restore: (agentId: string, version: string, options?: CallOptions) => Promise<Agent>
  }
  readonly mcpServers: {
    /** Adds an MCP server, and pins what it lists. */
    readonly create: (body: McpServerInput, options?: CallOptions) => Promise<McpServer>
    /** Lists a project's MCP servers. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<McpServer>
    /** Reads an MCP server with what it lists. */
    readonly get: (mcpServerId: string, options?: CallOptions) => Promise<McpServer>
    /** Changes an MCP server. */
    readonly update: (mcpServerId: string, body: McpServerChange, options?: CallOptions) => Promise<McpServer>
    /** Removes an MCP server. */
    readonly remove: (mcpServerId: string, options?: CallOptions) => Promise<undefined>
    /** Looks at an MCP server again, and pins what it lists now. */
    readonly refresh: (mcpServerId: string, options?: CallOptions) => Promise<McpServer>
    /** Answers a link at which somebody signs in to an MCP server. */
    readonly signIn: (mcpServerId: string, options?: CallOptions) => Promise<SignInLink>
    /** Signs out of an MCP server. */
    readonly signOut: (mcpServerId: string, options?: CallOptions) => Promise<undefined>
  }
  readonly runs: {
    /** Lists runs. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly status?: ReadonlyArray<"queued" | "running" | "completed" | "failed" | "cancelled" | "paused" | "skipped"> | undefined; readonly agentId?: string | undefined; readonly parentRunId?: string | undefined; readonly backtestId?: string | undefined; readonly trigger?: ReadonlyArray<"reaction" | "schedule" | "manual" | "webhook" | "context" | "agent" | "mcpEvent"> | undefined; readonly from?: string | undefined; readonly to?: string | undefined; readonly query?: string | undefined }, options?: CallOptions) => Listing<Run>
    /** Reads a run. */
    readonly get: (runId: string, options?: CallOptions) => Promise<Run>
    /** Reads a run's log, a page at a time or as it is written. */
    readonly events: (runId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly after?: "start" | "now" | number | undefined }, options?: CallOptions) => Listing<LoggedEvent>
    /** Lists the tool calls of a run. */
    readonly toolCalls: (runId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ToolCallRecord>
    /** Compares a run's log with what would be written again. */
    readonly replay: (runId: string, options?: CallOptions) => Promise<Replay>
    /** Cancels a run. */
    readonly cancel: (runId: string, options?: CallOptions) => Promise<Run>
    /** Lets a run go on that a limit has stopped. */
    readonly resume: (runId: string, body: ResumeInput, options?: CallOptions) => Promise<Run>
    /** Answers what a run has asked. */
    readonly answer: (runId: string, body: AnswerInput, options?: CallOptions) => Promise<Run>
  }
  readonly models: {
    /** Tells which models can be used, and what they cost. */
    readonly get: (options?: CallOptions) => Promise<ModelsState>
  }
  readonly runRecords: {
    /** Lists the steps of a run. */
    readonly steps: (runId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<RunStep>
    /** Tells what a run read, wrote and suggests. */
    readonly objects: (runId: string, options?: CallOptions) => Promise<RunObjects>
    /** Lists every try of every model request of a run. */
    readonly modelCalls: (runId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ModelCall>
    /** Reads the request to a model that is under way, or was when the run was ended. */
    readonly openRequest: (runId: string, options?: CallOptions) => Promise<OpenRequestAnswer>
    /** Reads one try with its exact request and answer. */
    readonly modelCall: (runId: string, number: string, options?: CallOptions) => Promise<ModelExchange>
  }
  readonly contexts: {
    /** Lists contexts. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly agentId?: string | undefined }, options?: CallOptions) => Listing<Context>
    /** Begins a context. */
    readonly create: (body: {
      readonly name: string
      readonly agentId?: string | null | undefined
    }, options?: CallOptions) => Promise<Context>
    /** Reads a context. */
    readonly get: (name: string, options?: CallOptions) => Promise<Context>
    /** Reads the state that a context's log folds to. */
    readonly state: (name: string, options?: CallOptions) => Promise<ContextState>
    /** Compares a context's log with what would be written again. */
    readonly replay: (name: string, options?: CallOptions) => Promise<Replay>
    /** Begins a context that shares another's log up to an event. */
    readonly fork: (name: string, body: {
      readonly name: string
      readonly at?: number | null | undefined
      readonly agentId?: string | null | undefined
      readonly message?: string | null | undefined
    }, options?: CallOptions) => Promise<Context>
    /** Ends the open turn of a context. */
    readonly interrupt: (name: string, options?: CallOptions) => Promise<LaterInterrupt | undefined>
    /** Adds an event to a context. */
    readonly addEvent: (name: string, body: EventInput, options?: CallOptions) => Promise<undefined>
    /** Reads a context's log, a page at a time or as it is written. */
    readonly events: (name: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly after?: "start" | "now" | number | undefined }, options?: CallOptions) => Listing<LoggedEvent>
  }
  readonly chat: {
    /** Says something to an agent, and tells what it answers. */
    readonly send: (body: ChatInput, options?: AskingOptions<{ readonly wait?: boolean | undefined }>) => Promise<ChatAnswer | UnfinishedChatAnswer>
  }
  readonly comparisons: {
    /** Asks variants of a context the same. */
    readonly compare: (name: string, body: ComparisonInput, options?: CallOptions) => Promise<Comparison>
    /** Reads what the variants of a comparison answered. */
    readonly comparison: (name: string, comparisonId: string, options?: CallOptions) => Promise<Comparison>
  }
  readonly conversations: {
    /** Lists the caller's conversations. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly agentId?: string | undefined }, options?: CallOptions) => Listing<Conversation>
    /** Begins a conversation in which nothing is said yet. */
    readonly begin: (body: ConversationInput, options?: CallOptions) => Promise<Conversation>
    /** Reads a conversation. */
    readonly get: (conversationId: string, options?: CallOptions) => Promise<Conversation>
    /** Gives a conversation another title. */
    readonly rename: (conversationId: string, body: {
      /** 1 to 200 characters */
      readonly title: string
    }, options?: CallOptions) => Promise<Conversation>
    /** Takes a conversation from every list. */
    readonly delete: (conversationId: string, options?: CallOptions) => Promise<undefined>
    /** Lists what was said in a conversation. */
    readonly messages: (conversationId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<ConversationMessage>
    /** Reads a conversation with all that was said. */
    readonly export: (conversationId: string, options?: CallOptions) => Promise<ExportedConversation>
  }
  readonly backtests: {
    /** Begins a backtest of an agent. */
    readonly begin: (agentId: string, body: BacktestInput, options?: CallOptions) => Promise<Backtest>
    /** Lists an agent's backtests. */
    readonly list: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Backtest>
    /** Reads a backtest with its report. */
    readonly get: (agentId: string, backtestId: string, options?: CallOptions) => Promise<ReportedBacktest>
    /** Tells event by event what a backtest suggests. */
    readonly results: (agentId: string, backtestId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<BacktestResult>
    /** Ends a backtest. */
    readonly cancel: (agentId: string, backtestId: string, options?: CallOptions) => Promise<Backtest>
  }
  readonly attachments: {
    /** Keeps a file, and tells the digest that names it. */
    readonly attach: (bytes: Bytes, options?: AskingOptions<{ readonly type?: string | undefined; readonly fileName?: string | undefined; readonly untrusted?: boolean | undefined }>) => Promise<SentAttachment>
    /** Reads a file. */
    readonly download: (digest: string, options?: CallOptions) => Promise<Uint8Array>
  }
  readonly tasks: {
    /** Lists tasks. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly status?: "pending" | "completed" | "rejected" | "expired" | undefined; readonly type?: "object_create_suggestion" | "object_update_suggestion" | "object_delete_suggestion" | "relationship_create_suggestion" | "relationship_update_suggestion" | "relationship_delete_suggestion" | "undo" | "question" | "todo" | "promotion" | undefined; readonly assignee?: string | undefined; readonly agentId?: string | undefined; readonly number?: number | undefined }, options?: CallOptions) => Listing<Task>
    /** Adds a todo of the caller's. */
    readonly add: (body: NewTodo, options?: CallOptions) => Promise<{
      readonly id: string
      readonly number: number
      readonly status: "pending" | "completed" | "rejected" | "expired"
      readonly title: string
      readonly description: string | null
      readonly resolvedBy: string | null
      readonly resolutionNote: string | null
      /** An instant, ISO 8601 in UTC with milliseconds */
      readonly createdAt: string
      readonly resolvedAt: string | null
      readonly type: "todo"
      readonly owner: string
    }>
    /** Reads a task. */
    readonly get: (taskId: string, options?: CallOptions) => Promise<Task>
    /** Changes a todo, or who decides a task and until when; editors may. */
    readonly change: (taskId: string, body: TaskChange, options?: CallOptions) => Promise<Task>
    /** Deletes a todo. */
    readonly remove: (taskId: string, options?: CallOptions) => Promise<undefined>
    /** Marks a todo as done. */
    readonly complete: (taskId: string, options?: CallOptions) => Promise<{
      readonly id: string
      readonly number: number
      readonly status: "pending" | "completed" | "rejected" | "expired"
      readonly title: string
      readonly description: string | null
      readonly resolvedBy: string | null
      readonly resolutionNote: string | null
      /** An instant, ISO 8601 in UTC with milliseconds */
      readonly createdAt: string
      readonly resolvedAt: string | null
      readonly type: "todo"
      readonly owner: string
    }>
    /** Lists what a suggestion said before it was refined. */
    readonly revisions: (taskId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<TaskRevision>
    /** Approves a suggestion, and makes its change; editors may, and reviewers an undo or a promotion. */
    readonly approve: (taskId: string, body: Approval, options?: CallOptions) => Promise<Task>
    /** Lets the agent suggest again what is outdated. */
    readonly rerun: (taskId: string, options?: CallOptions) => Promise<Task>
    /** Decides many tasks, one after another. */
    readonly decide: (body: Decisions, options?: CallOptions) => Promise<{
      readonly items: ReadonlyArray<Decided>
    }>
    /** Rejects a suggestion; editors may. */
    readonly reject: (taskId: string, body: Rejection, options?: CallOptions) => Promise<Task>
    /** Rejects all suggestions of an agent that wait. */
    readonly rejectAll: (agentId: string, body: RejectionOfAll, options?: CallOptions) => Promise<{
      readonly rejected: number
    }>
  }
  readonly denials: {
    /** Lists what was denied. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly agentId?: string | undefined; readonly runId?: string | undefined }, options?: CallOptions) => Listing<Denial>
  }
  readonly toolCalls: {
    /** Lists the tool calls of somebody's programs. */
    readonly list: (query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined; readonly userId?: string | undefined }, options?: CallOptions) => Listing<ToolCallRecord>
  }
  readonly undos: {
    /** Plans to take back what a run changed. */
    readonly undoRun: (runId: string, options?: CallOptions) => Promise<WaitingUndoTask | UndoTask>
    /** Plans to take back what a version of an agent changed. */
    readonly undoAgent: (agentId: string, body: AgentUndo, options?: CallOptions) => Promise<WaitingUndoTask | UndoTask>
    /** Plans to take back what agents changed in a chain. */
    readonly undoChain: (rootEventId: string, options?: CallOptions) => Promise<WaitingUndoTask | UndoTask>
    /** Lists what becomes of each object and relationship of a plan. */
    readonly items: (taskId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<UndoItem>
  }
  readonly webhooks: {
    /** Opens a webhook for an agent, and tells its token this once. */
    readonly create: (agentId: string, body: WebhookInput, options?: CallOptions) => Promise<OpenedWebhook>
    /** Lists an agent's webhooks. */
    readonly list: (agentId: string, query?: { readonly cursor?: string | undefined; readonly limit?: number | undefined }, options?: CallOptions) => Listing<Webhook>
    /** Gives a webhook another token. */
    readonly rotate: (agentId: string, webhookId: string, body: RotationInput, options?: CallOptions) => Promise<OpenedWebhook>
    /** Ends a webhook. */
    readonly revoke: (agentId: string, webhookId: string, options?: CallOptions) => Promise<undefined>
  }
  readonly verification: {
    /** Folds all logs of a project anew, and compares. */
    readonly verify: (options?: CallOptions) => Promise<Verification>
  }
}

/** Where each call goes. */
export const endpoints: ReadonlyArray<EndpointPlace> = [
  {"call":"system.health","method":"GET","path":"/health","sends":false,"asks":false,"form":"value"},
  {"call":"system.ready","method":"GET","path":"/ready","sends":false,"asks":false,"form":"value"},
  {"call":"metrics.scrape","method":"GET","path":"/metrics","sends":false,"asks":false,"form":"text"},
  {"call":"projects.me","method":"GET","path":"/api/me","sends":false,"asks":false,"form":"value"},
  {"call":"projects.list","method":"GET","path":"/api/projects","sends":false,"asks":true,"form":"page"},
  {"call":"projects.create","method":"POST","path":"/api/projects","sends":true,"asks":false,"form":"value"},
  {"call":"projects.get","method":"GET","path":"/api/projects/{projectId}","sends":false,"asks":false,"form":"value"},
  {"call":"projects.rename","method":"PATCH","path":"/api/projects/{projectId}","sends":true,"asks":false,"form":"value"},
  {"call":"projects.settings","method":"GET","path":"/api/projects/{projectId}/settings","sends":false,"asks":false,"form":"value"},
  {"call":"projects.changeSettings","method":"PATCH","path":"/api/projects/{projectId}/settings","sends":true,"asks":false,"form":"value"},
  {"call":"members.list","method":"GET","path":"/api/projects/{projectId}/members","sends":false,"asks":true,"form":"page"},
  {"call":"members.add","method":"POST","path":"/api/projects/{projectId}/members","sends":true,"asks":false,"form":"value"},
  {"call":"members.get","method":"GET","path":"/api/projects/{projectId}/members/{userId}","sends":false,"asks":false,"form":"value"},
  {"call":"members.change","method":"PATCH","path":"/api/projects/{projectId}/members/{userId}","sends":true,"asks":false,"form":"value"},
  {"call":"members.remove","method":"DELETE","path":"/api/projects/{projectId}/members/{userId}","sends":false,"asks":false,"form":"value"},
  {"call":"members.invite","method":"POST","path":"/api/projects/{projectId}/members/{userId}/login-link","sends":false,"asks":false,"form":"value"},
  {"call":"tokens.list","method":"GET","path":"/api/projects/{projectId}/tokens","sends":false,"asks":true,"form":"page"},
  {"call":"tokens.create","method":"POST","path":"/api/projects/{projectId}/tokens","sends":true,"asks":false,"form":"value"},
  {"call":"tokens.revoke","method":"DELETE","path":"/api/projects/{projectId}/tokens/{tokenId}","sends":false,"asks":false,"form":"value"},
  {"call":"serverTokens.list","method":"GET","path":"/api/tokens","sends":false,"asks":true,"form":"page"},
  {"call":"serverTokens.create","method":"POST","path":"/api/tokens","sends":true,"asks":false,"form":"value"},
  {"call":"serverTokens.revoke","method":"DELETE","path":"/api/tokens/{tokenId}","sends":false,"asks":false,"form":"value"},
  {"call":"serverTokens.loginLink","method":"POST","path":"/api/login-link","sends":false,"asks":false,"form":"value"},
  {"call":"sessions.list","method":"GET","path":"/api/me/sessions","sends":false,"asks":true,"form":"page"},
  {"call":"sessions.endOthers","method":"DELETE","path":"/api/me/sessions","sends":false,"asks":false,"form":"value"},
  {"call":"sessions.end","method":"DELETE","path":"/api/me/sessions/{sessionId}","sends":false,"asks":false,"form":"value"},
  {"call":"killSwitch.ofServer","method":"GET","path":"/api/kill-switch","sends":false,"asks":false,"form":"value"},
  {"call":"killSwitch.setServer","method":"PUT","path":"/api/kill-switch","sends":true,"asks":false,"form":"value"},
  {"call":"killSwitch.ofProject","method":"GET","path":"/api/projects/{projectId}/kill-switch","sends":false,"asks":false,"form":"value"},
  {"call":"killSwitch.setProject","method":"PUT","path":"/api/projects/{projectId}/kill-switch","sends":true,"asks":false,"form":"value"},
  {"call":"health.get","method":"GET","path":"/api/projects/{projectId}/health","sends":false,"asks":false,"form":"value"},
  {"call":"objects.list","method":"GET","path":"/api/projects/{projectId}/objects","sends":false,"asks":true,"form":"page"},
  {"call":"objects.create","method":"POST","path":"/api/projects/{projectId}/objects","sends":true,"asks":false,"form":"value"},
  {"call":"objects.get","method":"GET","path":"/api/projects/{projectId}/objects/{objectId}","sends":false,"asks":true,"form":"value"},
  {"call":"objects.update","method":"PATCH","path":"/api/projects/{projectId}/objects/{objectId}","sends":true,"asks":false,"form":"value"},
  {"call":"objects.delete","method":"DELETE","path":"/api/projects/{projectId}/objects/{objectId}","sends":false,"asks":true,"form":"value"},
  {"call":"objects.restore","method":"POST","path":"/api/projects/{projectId}/objects/{objectId}/restore","sends":false,"asks":false,"form":"value"},
  {"call":"objects.history","method":"GET","path":"/api/projects/{projectId}/objects/{objectId}/history","sends":false,"asks":true,"form":"page"},
  {"call":"objects.neighbors","method":"GET","path":"/api/projects/{projectId}/objects/{objectId}/neighbors","sends":false,"asks":true,"form":"value"},
  {"call":"objects.provenance","method":"GET","path":"/api/projects/{projectId}/objects/{objectId}/provenance","sends":false,"asks":true,"form":"value"},
  {"call":"objects.purges","method":"GET","path":"/api/projects/{projectId}/purges","sends":false,"asks":true,"form":"page"},
  {"call":"relationships.list","method":"GET","path":"/api/projects/{projectId}/relationships","sends":false,"asks":true,"form":"page"},
  {"call":"relationships.create","method":"POST","path":"/api/projects/{projectId}/relationships","sends":true,"asks":false,"form":"value"},
  {"call":"relationships.get","method":"GET","path":"/api/projects/{projectId}/relationships/{relationshipId}","sends":false,"asks":true,"form":"value"},
  {"call":"relationships.update","method":"PATCH","path":"/api/projects/{projectId}/relationships/{relationshipId}","sends":true,"asks":false,"form":"value"},
  {"call":"relationships.delete","method":"DELETE","path":"/api/projects/{projectId}/relationships/{relationshipId}","sends":false,"asks":true,"form":"value"},
  {"call":"relationships.restore","method":"POST","path":"/api/projects/{projectId}/relationships/{relationshipId}/restore","sends":false,"asks":false,"form":"value"},
  {"call":"relationships.history","method":"GET","path":"/api/projects/{projectId}/relationships/{relationshipId}/history","sends":false,"asks":true,"form":"page"},
  {"call":"feed.events","method":"GET","path":"/api/projects/{projectId}/events","sends":false,"asks":true,"form":"page"},
  {"call":"feed.get","method":"GET","path":"/api/projects/{projectId}/events/{eventId}","sends":false,"asks":false,"form":"value"},
  {"call":"chains.list","method":"GET","path":"/api/projects/{projectId}/chains","sends":false,"asks":true,"form":"page"},
  {"call":"chains.get","method":"GET","path":"/api/projects/{projectId}/chains/{rootEventId}","sends":false,"asks":true,"form":"value"},
  {"call":"transfer.import","method":"POST","path":"/api/projects/{projectId}/import","sends":true,"asks":true,"form":"lines"},
  {"call":"transfer.listImports","method":"GET","path":"/api/projects/{projectId}/imports","sends":false,"asks":true,"form":"page"},
  {"call":"transfer.getImport","method":"GET","path":"/api/projects/{projectId}/imports/{importId}","sends":false,"asks":false,"form":"value"},
  {"call":"transfer.export","method":"GET","path":"/api/projects/{projectId}/export","sends":false,"asks":true,"form":"lines"},
  {"call":"dumps.dump","method":"GET","path":"/api/projects/{projectId}/dump","sends":false,"asks":false,"form":"lines"},
  {"call":"dumps.restoreDump","method":"POST","path":"/api/restore","sends":true,"asks":true,"form":"lines"},
  {"call":"explanations.explain","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/explain","sends":false,"asks":true,"form":"value"},
  {"call":"explanations.list","method":"GET","path":"/api/projects/{projectId}/events/{eventId}/explanations","sends":false,"asks":true,"form":"page"},
  {"call":"agents.list","method":"GET","path":"/api/projects/{projectId}/agents","sends":false,"asks":true,"form":"page"},
  {"call":"agents.create","method":"POST","path":"/api/projects/{projectId}/agents","sends":true,"asks":false,"form":"value"},
  {"call":"agents.health","method":"GET","path":"/api/projects/{projectId}/agents/health","sends":false,"asks":true,"form":"page"},
  {"call":"agents.fires","method":"GET","path":"/api/projects/{projectId}/agents/fires","sends":false,"asks":true,"form":"value"},
  {"call":"agents.get","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}","sends":false,"asks":false,"form":"value"},
  {"call":"agents.update","method":"PATCH","path":"/api/projects/{projectId}/agents/{agentId}","sends":true,"asks":false,"form":"value"},
  {"call":"agents.delete","method":"DELETE","path":"/api/projects/{projectId}/agents/{agentId}","sends":false,"asks":false,"form":"value"},
  {"call":"agents.schedule","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/schedule","sends":false,"asks":false,"form":"value"},
  {"call":"agents.usage","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/usage","sends":false,"asks":true,"form":"value"},
  {"call":"agents.modelUsage","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/usage/models","sends":false,"asks":true,"form":"value"},
  {"call":"agents.trigger","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/trigger","sends":true,"asks":true,"form":"value"},
  {"call":"autonomy.get","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/autonomy","sends":false,"asks":true,"form":"value"},
  {"call":"autonomy.reverse","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/promotions/{promotionId}/reverse","sends":true,"asks":false,"form":"value"},
  {"call":"processing.queues","method":"GET","path":"/api/projects/{projectId}/reactions","sends":false,"asks":true,"form":"page"},
  {"call":"processing.log","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/processing-log","sends":false,"asks":true,"form":"page"},
  {"call":"processing.retry","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/processing-log/{entryId}/retry","sends":false,"asks":false,"form":"value"},
  {"call":"processing.deadLetters","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/dead-letters","sends":false,"asks":true,"form":"page"},
  {"call":"processing.redrive","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/dead-letters/redrive","sends":true,"asks":false,"form":"value"},
  {"call":"processing.pendingEvents","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/pending-events","sends":false,"asks":true,"form":"page"},
  {"call":"processing.batchTrigger","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/batch-trigger","sends":true,"asks":false,"form":"value"},
  {"call":"definitions.apply","method":"POST","path":"/api/projects/{projectId}/agents/apply","sends":true,"asks":false,"form":"value"},
  {"call":"definitions.versions","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/versions","sends":false,"asks":true,"form":"page"},
  {"call":"definitions.version","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/versions/{version}","sends":false,"asks":false,"form":"value"},
  {"call":"definitions.diff","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/versions/{version}/diff","sends":false,"asks":true,"form":"value"},
  {"call":"definitions.restore","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/versions/{version}/restore","sends":false,"asks":false,"form":"value"},
  {"call":"mcpServers.create","method":"POST","path":"/api/projects/{projectId}/mcp-servers","sends":true,"asks":false,"form":"value"},
  {"call":"mcpServers.list","method":"GET","path":"/api/projects/{projectId}/mcp-servers","sends":false,"asks":true,"form":"page"},
  {"call":"mcpServers.get","method":"GET","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}","sends":false,"asks":false,"form":"value"},
  {"call":"mcpServers.update","method":"PATCH","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}","sends":true,"asks":false,"form":"value"},
  {"call":"mcpServers.remove","method":"DELETE","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}","sends":false,"asks":false,"form":"value"},
  {"call":"mcpServers.refresh","method":"POST","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}/refresh","sends":false,"asks":false,"form":"value"},
  {"call":"mcpServers.signIn","method":"POST","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}/sign-in","sends":false,"asks":false,"form":"value"},
  {"call":"mcpServers.signOut","method":"DELETE","path":"/api/projects/{projectId}/mcp-servers/{mcpServerId}/sign-in","sends":false,"asks":false,"form":"value"},
  {"call":"runs.list","method":"GET","path":"/api/projects/{projectId}/runs","sends":false,"asks":true,"form":"page"},
  {"call":"runs.get","method":"GET","path":"/api/projects/{projectId}/runs/{runId}","sends":false,"asks":false,"form":"value"},
  {"call":"runs.events","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/events","sends":false,"asks":true,"form":"page"},
  {"call":"runs.toolCalls","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/tool-calls","sends":false,"asks":true,"form":"page"},
  {"call":"runs.replay","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/replay","sends":false,"asks":false,"form":"value"},
  {"call":"runs.cancel","method":"POST","path":"/api/projects/{projectId}/runs/{runId}/cancel","sends":false,"asks":false,"form":"value"},
  {"call":"runs.resume","method":"POST","path":"/api/projects/{projectId}/runs/{runId}/resume","sends":true,"asks":false,"form":"value"},
  {"call":"runs.answer","method":"POST","path":"/api/projects/{projectId}/runs/{runId}/answer","sends":true,"asks":false,"form":"value"},
  {"call":"models.get","method":"GET","path":"/api/projects/{projectId}/models","sends":false,"asks":false,"form":"value"},
  {"call":"runRecords.steps","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/steps","sends":false,"asks":true,"form":"page"},
  {"call":"runRecords.objects","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/objects","sends":false,"asks":false,"form":"value"},
  {"call":"runRecords.modelCalls","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/model-calls","sends":false,"asks":true,"form":"page"},
  {"call":"runRecords.openRequest","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/open-request","sends":false,"asks":false,"form":"value"},
  {"call":"runRecords.modelCall","method":"GET","path":"/api/projects/{projectId}/runs/{runId}/model-calls/{number}","sends":false,"asks":false,"form":"value"},
  {"call":"contexts.list","method":"GET","path":"/api/projects/{projectId}/contexts","sends":false,"asks":true,"form":"page"},
  {"call":"contexts.create","method":"POST","path":"/api/projects/{projectId}/contexts","sends":true,"asks":false,"form":"value"},
  {"call":"contexts.get","method":"GET","path":"/api/projects/{projectId}/contexts/{name}","sends":false,"asks":false,"form":"value"},
  {"call":"contexts.state","method":"GET","path":"/api/projects/{projectId}/contexts/{name}/state","sends":false,"asks":false,"form":"value"},
  {"call":"contexts.replay","method":"GET","path":"/api/projects/{projectId}/contexts/{name}/replay","sends":false,"asks":false,"form":"value"},
  {"call":"contexts.fork","method":"POST","path":"/api/projects/{projectId}/contexts/{name}/fork","sends":true,"asks":false,"form":"value"},
  {"call":"contexts.interrupt","method":"POST","path":"/api/projects/{projectId}/contexts/{name}/interrupt","sends":false,"asks":false,"form":"value"},
  {"call":"contexts.addEvent","method":"POST","path":"/api/projects/{projectId}/contexts/{name}/events","sends":true,"asks":false,"form":"value"},
  {"call":"contexts.events","method":"GET","path":"/api/projects/{projectId}/contexts/{name}/events","sends":false,"asks":true,"form":"page"},
  {"call":"chat.send","method":"POST","path":"/api/projects/{projectId}/chat","sends":true,"asks":true,"form":"value"},
  {"call":"comparisons.compare","method":"POST","path":"/api/projects/{projectId}/contexts/{name}/comparisons","sends":true,"asks":false,"form":"value"},
  {"call":"comparisons.comparison","method":"GET","path":"/api/projects/{projectId}/contexts/{name}/comparisons/{comparisonId}","sends":false,"asks":false,"form":"value"},
  {"call":"conversations.list","method":"GET","path":"/api/projects/{projectId}/conversations","sends":false,"asks":true,"form":"page"},
  {"call":"conversations.begin","method":"POST","path":"/api/projects/{projectId}/conversations","sends":true,"asks":false,"form":"value"},
  {"call":"conversations.get","method":"GET","path":"/api/projects/{projectId}/conversations/{conversationId}","sends":false,"asks":false,"form":"value"},
  {"call":"conversations.rename","method":"PATCH","path":"/api/projects/{projectId}/conversations/{conversationId}","sends":true,"asks":false,"form":"value"},
  {"call":"conversations.delete","method":"DELETE","path":"/api/projects/{projectId}/conversations/{conversationId}","sends":false,"asks":false,"form":"value"},
  {"call":"conversations.messages","method":"GET","path":"/api/projects/{projectId}/conversations/{conversationId}/messages","sends":false,"asks":true,"form":"page"},
  {"call":"conversations.export","method":"GET","path":"/api/projects/{projectId}/conversations/{conversationId}/export","sends":false,"asks":false,"form":"value"},
  {"call":"backtests.begin","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/backtests","sends":true,"asks":false,"form":"value"},
  {"call":"backtests.list","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/backtests","sends":false,"asks":true,"form":"page"},
  {"call":"backtests.get","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/backtests/{backtestId}","sends":false,"asks":false,"form":"value"},
  {"call":"backtests.results","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/backtests/{backtestId}/results","sends":false,"asks":true,"form":"page"},
  {"call":"backtests.cancel","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/backtests/{backtestId}/cancel","sends":false,"asks":false,"form":"value"},
  {"call":"attachments.attach","method":"POST","path":"/api/projects/{projectId}/attachments","sends":true,"asks":true,"form":"value"},
  {"call":"attachments.download","method":"GET","path":"/api/projects/{projectId}/attachments/{digest}","sends":false,"asks":false,"form":"bytes"},
  {"call":"tasks.list","method":"GET","path":"/api/projects/{projectId}/tasks","sends":false,"asks":true,"form":"page"},
  {"call":"tasks.add","method":"POST","path":"/api/projects/{projectId}/tasks","sends":true,"asks":false,"form":"value"},
  {"call":"tasks.get","method":"GET","path":"/api/projects/{projectId}/tasks/{taskId}","sends":false,"asks":false,"form":"value"},
  {"call":"tasks.change","method":"PATCH","path":"/api/projects/{projectId}/tasks/{taskId}","sends":true,"asks":false,"form":"value"},
  {"call":"tasks.remove","method":"DELETE","path":"/api/projects/{projectId}/tasks/{taskId}","sends":false,"asks":false,"form":"value"},
  {"call":"tasks.complete","method":"POST","path":"/api/projects/{projectId}/tasks/{taskId}/complete","sends":false,"asks":false,"form":"value"},
  {"call":"tasks.revisions","method":"GET","path":"/api/projects/{projectId}/tasks/{taskId}/revisions","sends":false,"asks":true,"form":"page"},
  {"call":"tasks.approve","method":"POST","path":"/api/projects/{projectId}/tasks/{taskId}/approve","sends":true,"asks":false,"form":"value"},
  {"call":"tasks.rerun","method":"POST","path":"/api/projects/{projectId}/tasks/{taskId}/rerun","sends":false,"asks":false,"form":"value"},
  {"call":"tasks.decide","method":"POST","path":"/api/projects/{projectId}/tasks/decisions","sends":true,"asks":false,"form":"value"},
  {"call":"tasks.reject","method":"POST","path":"/api/projects/{projectId}/tasks/{taskId}/reject","sends":true,"asks":false,"form":"value"},
  {"call":"tasks.rejectAll","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/suggestions/reject","sends":true,"asks":false,"form":"value"},
  {"call":"denials.list","method":"GET","path":"/api/projects/{projectId}/denials","sends":false,"asks":true,"form":"page"},
  {"call":"toolCalls.list","method":"GET","path":"/api/projects/{projectId}/tool-calls","sends":false,"asks":true,"form":"page"},
  {"call":"undos.undoRun","method":"POST","path":"/api/projects/{projectId}/runs/{runId}/undo","sends":false,"asks":false,"form":"value"},
  {"call":"undos.undoAgent","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/undo","sends":true,"asks":false,"form":"value"},
  {"call":"undos.undoChain","method":"POST","path":"/api/projects/{projectId}/chains/{rootEventId}/undo","sends":false,"asks":false,"form":"value"},
  {"call":"undos.items","method":"GET","path":"/api/projects/{projectId}/tasks/{taskId}/items","sends":false,"asks":true,"form":"page"},
  {"call":"webhooks.create","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/webhooks","sends":true,"asks":false,"form":"value"},
  {"call":"webhooks.list","method":"GET","path":"/api/projects/{projectId}/agents/{agentId}/webhooks","sends":false,"asks":true,"form":"page"},
  {"call":"webhooks.rotate","method":"POST","path":"/api/projects/{projectId}/agents/{agentId}/webhooks/{webhookId}/rotate","sends":true,"asks":false,"form":"value"},
  {"call":"webhooks.revoke","method":"DELETE","path":"/api/projects/{projectId}/agents/{agentId}/webhooks/{webhookId}","sends":false,"asks":false,"form":"value"},
  {"call":"verification.verify","method":"GET","path":"/api/projects/{projectId}/verify","sends":false,"asks":false,"form":"value"}
]

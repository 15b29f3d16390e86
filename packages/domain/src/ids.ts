/**
 * The names by which everything is found again.
 *
 * Row ids are UUIDv7 made by the program, user ids are text. Each id has a
 * brand of its own, so that a run's id cannot be handed to something that
 * wants an agent's. This file makes no ids; the server's `Ids` does.
 */
import { Schema } from "effect"

const Uuid = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, {
    message: "Expected a lower-case UUID"
  })
)

export const ProjectId = Uuid.pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

export const ObjectId = Uuid.pipe(Schema.brand("ObjectId"))
export type ObjectId = typeof ObjectId.Type

export const RelationshipId = Uuid.pipe(Schema.brand("RelationshipId"))
export type RelationshipId = typeof RelationshipId.Type

export const GraphEventId = Uuid.pipe(Schema.brand("GraphEventId"))
export type GraphEventId = typeof GraphEventId.Type

export const PurgeId = Uuid.pipe(Schema.brand("PurgeId"))
export type PurgeId = typeof PurgeId.Type

export const AgentId = Uuid.pipe(Schema.brand("AgentId"))
export type AgentId = typeof AgentId.Type

export const RunId = Uuid.pipe(Schema.brand("RunId"))
export type RunId = typeof RunId.Type

export const EntryId = Uuid.pipe(Schema.brand("EntryId"))
export type EntryId = typeof EntryId.Type

export const TaskId = Uuid.pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type

export const PromotionId = Uuid.pipe(Schema.brand("PromotionId"))
export type PromotionId = typeof PromotionId.Type

export const ImportId = Uuid.pipe(Schema.brand("ImportId"))
export type ImportId = typeof ImportId.Type

export const ToolCallId = Uuid.pipe(Schema.brand("ToolCallId"))
export type ToolCallId = typeof ToolCallId.Type

export const DenialId = Uuid.pipe(Schema.brand("DenialId"))
export type DenialId = typeof DenialId.Type

export const WebhookId = Uuid.pipe(Schema.brand("WebhookId"))
export type WebhookId = typeof WebhookId.Type

export const ConversationId = Uuid.pipe(Schema.brand("ConversationId"))
export type ConversationId = typeof ConversationId.Type

export const McpServerId = Uuid.pipe(Schema.brand("McpServerId"))
export type McpServerId = typeof McpServerId.Type

export const TokenId = Uuid.pipe(Schema.brand("TokenId"))
export type TokenId = typeof TokenId.Type

export const BacktestId = Uuid.pipe(Schema.brand("BacktestId"))
export type BacktestId = typeof BacktestId.Type

/** Proves that its holder is the one attempt that may write for a run. */
export const AttemptToken = Uuid.pipe(Schema.brand("AttemptToken"))
export type AttemptToken = typeof AttemptToken.Type

/** A user's id: any text the sign-in system uses. */
export const UserId = Schema.String.check(Schema.isBetweenLength(1, 200)).pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type

/** An instant on the wire: ISO 8601 in UTC with milliseconds. */
export const Timestamp = Schema.String.annotate({
  description: "An instant, ISO 8601 in UTC with milliseconds",
  examples: ["2026-11-20T23:30:00.000Z"]
})

/**
 * The graph's rows as the database gives them, turned into the domain's words.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 */
import type { GraphObject, ObjectVersion, Relationship } from "@tropism/domain/graph"

type Stored<A extends { readonly createdAt: string; readonly updatedAt: string }> = Omit<
  A,
  "createdAt" | "updatedAt"
> & {
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type ObjectRow = Stored<GraphObject>
export type RelationshipRow = Stored<Relationship>
export type VersionRow = Omit<ObjectVersion, "createdAt"> & { readonly createdAt: Date }

export const toObject = (row: ObjectRow): GraphObject => ({
  id: row.id,
  type: row.type,
  key: row.key,
  properties: row.properties,
  untrusted: row.untrusted,
  version: row.version,
  actorType: row.actorType,
  actorId: row.actorId,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

export const toRelationship = (row: RelationshipRow): Relationship => ({
  id: row.id,
  type: row.type,
  fromId: row.fromId,
  toId: row.toId,
  properties: row.properties,
  untrusted: row.untrusted,
  version: row.version,
  actorType: row.actorType,
  actorId: row.actorId,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

export const toVersion = (row: VersionRow): ObjectVersion => ({
  version: row.version,
  type: row.type,
  properties: row.properties,
  untrusted: row.untrusted,
  actorType: row.actorType,
  actorId: row.actorId,
  approvedBy: row.approvedBy,
  runId: row.runId,
  toolCallId: row.toolCallId,
  taskId: row.taskId,
  eventId: row.eventId,
  createdAt: row.createdAt.toISOString()
})

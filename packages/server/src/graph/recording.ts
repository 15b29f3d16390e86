/**
 * The common end of every graph write: version and event.
 *
 * **Invariant** A write is one statement. It names its written rows `changed`, each with an event id and the changed
 * properties; these expressions insert version and event from that, so neither exists without the other.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { byCodePoint } from "@tropism/domain/code-points"
import type { ChangeType, GraphObject, Relationship, ObjectVersion } from "@tropism/domain/graph"
import type { GraphEventId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { Untrusted } from "@tropism/domain/untrusted"
import type { SqlClient, Statement } from "effect/sql"

/** What a statement does with a row that another transaction has locked: waits for it or skips the item. */
export type Locked = "wait" | "skip"

/** A built statement, with the outcomes of its items in order. */
export interface Planned<Outcome> {
  readonly statement: Statement.Statement<unknown>
  readonly outcomes: (rows: ReadonlyArray<unknown>) => ReadonlyArray<Outcome>
}

/** Outcome of a creation; `undecided` needs another statement. */
export type Created<Row> =
  | { readonly verdict: "created"; readonly row: Row; readonly eventId: GraphEventId }
  /** Another entity has the key, or already connects the two ends. */
  | { readonly verdict: "taken"; readonly holderId: string }
  /** One end of the relationship does not exist. */
  | { readonly verdict: "noEnd"; readonly end: "fromId" | "toId" }
  | { readonly verdict: "undecided" }

/** A row that a creation returns; its columns are null when nothing was created. */
export type CreationRow<Row> = Row & {
  readonly itemId: string
  readonly eventId: GraphEventId
  readonly isCreated: boolean
  readonly holderId: string | null
}

export const createdOf = <Row>(row: CreationRow<Row>): Created<Row> => {
  if (row.isCreated) return { verdict: "created", row, eventId: row.eventId }
  return row.holderId === null ? { verdict: "undecided" } : { verdict: "taken", holderId: row.holderId }
}

/** The actor and cause of a change. */
export interface Author {
  readonly actor: Actor
  readonly cause: Cause
}

/** Written content of an entity: properties, and which of them are untrusted. */
export interface Content {
  readonly properties: Properties
  readonly untrusted: Untrusted
}

/** Returns the content of a change, with sorted names as they are stored. */
export const contentOf = ({
  data,
  untrusted = []
}: {
  readonly data: Properties
  readonly untrusted?: Untrusted
}): Content => ({ properties: data, untrusted: [...new Set(untrusted)].toSorted(byCodePoint) })

/** Outcome of a change; `unchanged` when everything was equal already. */
export interface Applied {
  readonly change: ChangeType | "unchanged"
  readonly eventId: GraphEventId | null
  readonly entity:
    | { readonly kind: "object"; readonly object: GraphObject }
    | { readonly kind: "relationship"; readonly relationship: Relationship }
}

/** The columns of an object or relationship, without the search vector. */
export const objectColumns =
  "id, project_id, type, key, properties, untrusted, version, actor_type, actor_id, created_at, updated_at"
export const relationshipColumns =
  "id, project_id, type, from_id, to_id, properties, untrusted, version, actor_type, actor_id, created_at, updated_at"

/** The same columns, qualified with a table alias. */
export const columnsOf = (table: string, columns: string): string => columns.replaceAll(/\w+/g, `${table}.$&`)

/** The differences between writes of objects and of relationships. */
export const kinds = {
  object: {
    table: "kb.graph_objects",
    columns: objectColumns,
    versions: "kb.graph_object_versions (object_id",
    entityType: "graphObject",
    own: "'key', key"
  },
  relationship: {
    table: "kb.graph_relationships",
    columns: relationshipColumns,
    versions: "kb.graph_relationship_versions (relationship_id",
    entityType: "relationship",
    own: "'fromId', from_id, 'toId', to_id"
  }
} as const

export type EntityKind = keyof typeof kinds

/** The `version` and `event` parts, for a statement with `changed (…columns, event_id, changed_properties)`. */
export const recording = (
  sql: SqlClient.SqlClient,
  kind: EntityKind,
  type: ChangeType,
  { cause }: Pick<Author, "cause">
) => {
  const { versions, entityType, own } = kinds[kind]
  const by = sql`${cause.approvedBy}::text, ${cause.runId}::uuid, ${cause.toolCallId}::uuid, ${cause.taskId}::uuid`
  return sql`
    version as (
      insert into ${sql.literal(versions)}, version, project_id, type, properties, untrusted, actor_type, actor_id,
        approved_by, run_id, tool_call_id, task_id, event_id, created_at)
      select id, version, project_id, ${type}::text, properties, untrusted, actor_type, actor_id, ${by}, event_id, updated_at from changed
    ), event as (
      insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
        actor_type, actor_id, approved_by, run_id, tool_call_id, task_id, root_event_id, depth, undoes)
      select event_id, project_id, ${entityType}::text, type, id, version, ${type}::text, changed_properties,
        jsonb_build_object('id', id, 'type', type, ${sql.literal(own)}, 'properties', properties, 'version', version)
          || case when untrusted = '{}' then '{}' else jsonb_build_object('untrusted', untrusted) end,
        actor_type, actor_id, ${by}, coalesce(${cause.rootEventId}::uuid, event_id), ${cause.depth}::int, ${cause.undoes ?? []}::uuid[]
      from changed order by event_id
    )`
}

/** Items as JSON rows with these columns. */
export const itemRows = (
  sql: SqlClient.SqlClient,
  items: ReadonlyArray<Readonly<Record<string, unknown>>>,
  columns: string
) =>
  sql`select * from jsonb_to_recordset(${JSON.stringify(items)}::text::jsonb) as item(${sql.literal(columns)})`

/** Puts the returned rows into the order of the items. */
export const inOrder =
  <Row extends { readonly itemId: string }, A>(itemIds: ReadonlyArray<string>, outcomeOf: (row: Row) => A) =>
  (rows: ReadonlyArray<unknown>): ReadonlyArray<A> => {
    const byId = new Map((rows as ReadonlyArray<Row>).map((row) => [row.itemId, row]))
    return itemIds.map((id) => {
      const row = byId.get(id)
      if (row === undefined) throw new Error(`The statement said nothing of ${id}`)
      return outcomeOf(row)
    })
  }

/** All property names, sorted. */
export const allProperties = (sql: SqlClient.SqlClient) =>
  sql`array(select name from jsonb_object_keys(properties) name order by name collate "C")`

// Converts rows of the graph to domain types.

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

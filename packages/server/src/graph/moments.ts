/**
 * The tables that a read uses: the graph now, or as of an instant.
 *
 * Both have the same columns, so each read is written once. Deleted entities are included only as of an instant at which
 * they existed. Instants are compared in milliseconds, the precision of the API, so a returned instant can be used in a
 * request.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, type ProjectTransaction } from "../database/database.ts"
import { relationshipColumns } from "./recording.ts"

/** The instant to read as of; undefined is now. */
export type Moment = Date | undefined

export class Moments extends Context.Service<
  Moments,
  {
    /** The current time of the database clock, which stamps all writes. */
    readonly now: Effect.Effect<Date, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Moments") {
  static readonly layer = Layer.effect(
    Moments,
    Effect.map(SqlClient.SqlClient, (sql) =>
      Moments.of({
        now: orDie(
          Effect.map(
            Effect.flatMap(sql<{ readonly now: Date }>`select now() as now`, onlyRow),
            ({ now }) => now
          )
        )
      })
    )
  )
}

/** Selects the versions up to an instant, the one in force first. */
export const upTo = (sql: SqlClient.SqlClient, moment: Date) =>
  sql`created_at < ${moment.toISOString()}::timestamptz + interval '1 millisecond' order by version desc limit 1`

/** The objects of the project, with the column `search`. */
export const objectsAt = (sql: SqlClient.SqlClient, moment: Moment, projectId: ProjectId) =>
  moment === undefined
    ? sql.literal("kb.project_objects")
    : sql`(
        select object.id, object.project_id, object.type, object.key, was.properties, was.untrusted, was.version, was.actor_type, was.actor_id,
          object.created_at, was.created_at as updated_at, kb.search_vector(object.type, object.key, was.properties) as search
        from kb.graph_objects object cross join lateral (
          select type, version, properties, untrusted, actor_type, actor_id, created_at from kb.graph_object_versions
          where object_id = object.id and ${upTo(sql, moment)}
        ) was
        where object.project_id = ${projectId} and was.type <> 'deleted')`

/** The relationships of the project. */
export const relationshipsAt = (sql: SqlClient.SqlClient, moment: Moment, projectId: ProjectId) =>
  moment === undefined
    ? sql`(select ${sql.literal(relationshipColumns)} from kb.graph_relationships where project_id = ${projectId} and deleted_at is null)`
    : sql`(
        select one.id, one.project_id, one.type, one.from_id, one.to_id, was.properties, was.untrusted, was.version, was.actor_type, was.actor_id,
          one.created_at, was.created_at as updated_at
        from (
          -- Two halves, each with an index of its own on either end.
          select id, project_id, type, from_id, to_id, created_at from kb.graph_relationships where deleted_at is null
          union all
          select id, project_id, type, from_id, to_id, created_at from kb.graph_relationships where deleted_at is not null
        ) one cross join lateral (
          select type, version, properties, untrusted, actor_type, actor_id, created_at from kb.graph_relationship_versions
          where relationship_id = one.id and ${upTo(sql, moment)}
        ) was
        where one.project_id = ${projectId} and was.type <> 'deleted')`

/** One half of kb.graph_relationships, with the alias `one`. */
interface RelationshipHalf {
  /** Condition of the half's rows; each half has its own indexes. */
  readonly rows: Statement.Fragment
  /** Whether a row existed at the instant; evaluated row by row, so that a bounded read follows an index and stops. */
  readonly wasThere: Statement.Fragment
}

/** Returns the halves that may contain relationships that existed at the instant. */
export const relationshipHalves = (
  sql: SqlClient.SqlClient,
  moment: Moment
): ReadonlyArray<RelationshipHalf> => {
  const live = sql.literal("one.deleted_at is null")
  if (moment === undefined) return [{ rows: live, wasThere: sql.literal("true") }]
  // Written as the negation of a rare condition: where the planner expects few matches it reads all rows of a hub and sorts them.
  const wasThere = sql`coalesce((
    select type from kb.graph_relationship_versions where relationship_id = one.id and ${upTo(sql, moment)}), 'deleted') <> 'deleted'`
  return [
    { rows: live, wasThere },
    { rows: sql.literal("one.deleted_at is not null"), wasThere }
  ]
}

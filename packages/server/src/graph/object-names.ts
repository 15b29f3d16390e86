/**
 * What people call an object, as a part of a query about something else: one look at a primary key for each row.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 */
import { namedObjectBounds } from "@tropism/domain/named-object"
import type { SqlClient, Statement } from "effect/sql"

/** A `NamedObject`, or null where there is no object with this id in the project. */
export const objectNamed = (
  sql: SqlClient.SqlClient,
  projectId: Statement.Fragment,
  id: Statement.Fragment
): Statement.Fragment => {
  const said = (property: string) =>
    sql`case jsonb_typeof(named.properties -> ${property}) when 'string' then nullif(btrim(named.properties ->> ${property}), '') end`
  return sql`(
    select jsonb_build_object('objectId', named.id, 'type', named.type,
      'name', left(coalesce(named.key, ${said("name")}, ${said("title")}, ${said("label")}), ${namedObjectBounds.nameMaxChars}))
    from kb.graph_objects named where named.id = ${id} and named.project_id = ${projectId})`
}

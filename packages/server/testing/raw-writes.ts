/**
 * Writes of the graph that go around the gateway, with the server's own rights.
 *
 * A whole write is what the gateway's statements do: entity, version and event in
 * one statement. A story leaves a part of it out, or lets a part lie.
 */
import { Effect } from "effect"
import { connect, errorCode, errorText, type PostgresAccess } from "../src/database/postgres-access.ts"

/** What the columns of a row are set to, as SQL; a column that is not named keeps what is true. */
export type Columns = Readonly<Record<string, string>>

/** An update of an object: who writes it, and what its version and its event say; null is none. */
export interface RawUpdate {
  readonly objectId: string
  readonly entity?: Columns
  readonly version?: Columns | null
  readonly event?: Columns | null
}

const insert = (table: string, columns: Columns): string =>
  `insert into kb.${table} (${Object.keys(columns).join(", ")}) select ${Object.values(columns).join(", ")} from changed`

/** The columns that say who made a change and why, taken from the event's. */
const causeOf = ({ approved_by, run_id, tool_call_id, task_id }: Columns): Columns => ({
  approved_by: approved_by ?? "null",
  run_id: run_id ?? "null::uuid",
  tool_call_id: tool_call_id ?? "null::uuid",
  task_id: task_id ?? "null::uuid"
})

const uuidOf = (text: string): string => `md5('${text}' || id || version)::uuid`

/** One statement that updates an object, its properties and its version first. */
export const rawUpdate = ({ objectId, entity = {}, event = {}, version = {} }: RawUpdate): string => {
  const set = {
    properties: `properties || '{"raw": true}'`,
    version: "version + 1",
    updated_at: "now()",
    actor_type: "'user'",
    actor_id: "'admin'",
    ...entity
  }
  const parts = [
    `changed as (update kb.graph_objects set ${Object.entries(set)
      .map(([column, value]) => `${column} = ${value}`)
      .join(", ")} where id = '${objectId}' returning *)`,
    ...(version === null
      ? []
      : [
          `version as (${insert("graph_object_versions", {
            object_id: "id",
            version: "version",
            project_id: "project_id",
            type: "'updated'",
            properties: "properties",
            untrusted: "untrusted",
            actor_type: "actor_type",
            actor_id: "actor_id",
            event_id: uuidOf("event"),
            ...causeOf(event ?? {}),
            ...version
          })})`
        ]),
    ...(event === null
      ? []
      : [
          `event as (${insert("graph_events", {
            id: uuidOf("event"),
            project_id: "project_id",
            entity_type: "'graphObject'",
            object_type: "type",
            entity_id: "id",
            version: "version",
            type: "'updated'",
            changed_properties: "'{raw}'",
            snapshot: "jsonb_build_object('properties', properties)",
            actor_type: "actor_type",
            actor_id: "actor_id",
            root_event_id: uuidOf("event"),
            depth: "0",
            ...event
          })})`
        ])
  ]
  return `with ${parts.join(", ")} select id from changed`
}

/** The code and the sentence with which PostgreSQL refuses the last of these statements; undefined when it does not. */
export const refusalOfServer = (
  access: PostgresAccess,
  projectId: string,
  ...statements: ReadonlyArray<string>
): Effect.Effect<{ readonly code: string | undefined; readonly sentence: string } | undefined> =>
  Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* connect(access.serverUrl)
      yield* connection.query("begin")
      yield* connection.query(`select set_config('tropism.project', '${projectId}', true)`)
      for (const [index, statement] of statements.entries()) {
        const refused = yield* connection.query(statement).pipe(
          Effect.as(undefined),
          Effect.catch((error) => Effect.succeed({ code: errorCode(error), sentence: errorText(error) }))
        )
        if (refused === undefined) continue
        yield* connection.query("rollback")
        if (index < statements.length - 1)
          return yield* Effect.die(new Error(`${statement} was refused: ${refused.sentence}`))
        return refused
      }
      yield* connection.query("commit")
      return undefined
    })
  ).pipe(Effect.orDie)

/**
 * Finds entities whose current state differs from their history.
 *
 * A page of entities is one query that returns only differences, so a long history costs time and no memory. Purged
 * entities have no history and are skipped.
 */
import type { Difference, VerificationRule } from "@tropism/domain/verification"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"

/** Counts of one kind. */
export interface VerifiedEntities {
  readonly entities: number
  readonly versions: number
}

/** Receives differences as they are found, and how many more exist. */
export type TellDifferences = (differences: ReadonlyArray<Difference>, more: number) => void

interface Page {
  readonly last: string | null
  readonly entities: number
  readonly versions: number
  readonly faultCount: number
  /** The first differences of the page. */
  readonly faults: ReadonlyArray<{
    readonly rule: VerificationRule
    readonly id: string
    readonly detail: string
  }>
}

export const makeGraphVerification = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Tables and columns of each kind. */
  const tables = {
    object: {
      entities: sql.literal("kb.graph_objects"),
      history: sql.literal("kb.graph_object_versions"),
      owner: sql.literal("object_id"),
      present: sql.literal("purged_at is null"),
      propertyVersions: sql.literal("property_versions")
    },
    relationship: {
      entities: sql.literal("kb.graph_relationships"),
      history: sql.literal("kb.graph_relationship_versions"),
      owner: sql.literal("relationship_id"),
      present: sql.literal("not exists (select 1 from kb.graph_purges where entity_id = entity.id)"),
      propertyVersions: sql.literal("null::jsonb")
    }
  }

  const page = Effect.fnUntraced(function* (kind: keyof typeof tables, after: string) {
    const { projectId } = yield* ProjectTransaction
    const { entities, history, owner, present, propertyVersions } = tables[kind]
    const [answer] = yield* sql<Page>`
      with entity as materialized (
        select id, version, properties, untrusted, ${propertyVersions} as property_versions, deleted_at is not null as is_deleted from ${entities} entity
        where project_id = ${projectId} and id > ${after}::uuid and ${present} order by id limit ${graphLimits.verifyPageEntities}
      ), told as (
        select version.*, entity.id as entity_id, entity.version as present_version, entity.properties as present_properties, entity.untrusted as present_untrusted, entity.is_deleted,
          lag(version.version, 1, 0) over history as version_before, lag(version.properties) over history as properties_before, lag(version.untrusted) over history as untrusted_before,
          lead(version.version) over history is null as is_last,
          event.id as told_id, event.version as told_version, event.type as told_type, event.entity_id as told_entity,
          event.snapshot -> 'properties' as told_properties, coalesce(event.snapshot -> 'untrusted', '[]') as told_untrusted, event.changed_properties,
          (event.actor_type, event.actor_id, event.approved_by, event.run_id, event.tool_call_id, event.task_id)
            is not distinct from (version.actor_type, version.actor_id, version.approved_by, version.run_id, version.tool_call_id, version.task_id) as is_author_told
        from entity join ${history} version on version.${owner} = entity.id
        left join kb.graph_events event on event.id = version.event_id
        window history as (partition by version.${owner} order by version.version)
      ), changed as materialized (
        select entity_id, version, type, changed_properties, array(
          select coalesce(was.key, is_now.key) from jsonb_each(properties_before) was full join jsonb_each(properties) is_now on was.key = is_now.key
          where was.value is distinct from is_now.value
            or (coalesce(was.key, is_now.key) = any (untrusted_before)) <> (coalesce(was.key, is_now.key) = any (untrusted)) order by coalesce(was.key, is_now.key) collate "C") as names
        from told where properties_before is not null
      ), set_by as (
        select entity_id, name, max(version) as version from changed, unnest(names) name group by entity_id, name
      ), fault as (
        select 'versions' as rule, entity_id as id, format('Version %s follows version %s', version, version_before) as detail
        from told where version <> version_before + 1
        union all
        select 'present', entity_id, format('Its history ends at version %s and it is at version %s, or their properties differ', version, present_version)
        from told where is_last and (version <> present_version or properties <> present_properties or untrusted <> present_untrusted or (type = 'deleted') <> is_deleted)
        union all
        select 'event', entity_id, format('The event of version %s is missing or says something else', version)
        from told where told_id is null or told_version <> version or told_type <> type or told_entity <> entity_id
          or told_properties <> properties or told_untrusted <> to_jsonb(untrusted) or not is_author_told
        union all
        select 'changedProperties', entity_id, format('The event of version %s names other properties than those that changed', version)
        from changed where type = 'updated' and array(select name from unnest(changed_properties) name order by name collate "C") <> names
        union all
        select 'propertyVersions', id, format('It says %s of which version set its properties, and its history says %s', property_versions, versions)
        from (
          select id, property_versions, coalesce(jsonb_object_agg(set_by.name, set_by.version) filter (where set_by.name is not null), '{}') as versions
          from entity left join set_by on set_by.entity_id = entity.id and entity.properties ? set_by.name
          where property_versions is not null group by id, property_versions
        ) newest where property_versions <> versions
        union all
        select 'versions', id, 'It has no history' from entity where not exists (select 1 from ${history} version where version.${owner} = entity.id)
      )
      select (select max(id::text) from entity) as last, (select count(*)::int from entity) as entities, (select count(*)::int from told) as versions,
        (select count(*)::int from fault) as fault_count,
        coalesce((
          select jsonb_agg(jsonb_build_object('rule', rule, 'id', id, 'detail', detail) order by id, detail)
          from (select rule, id, detail from fault order by id, detail limit ${graphLimits.verifyPageFaults}) shown
        ), '[]') as faults`
    return answer
  })

  /** Verifies every entity of a kind. */
  const verify = Effect.fnUntraced(function* (kind: keyof typeof tables, tell: TellDifferences) {
    let after = "00000000-0000-0000-0000-000000000000"
    let sum: VerifiedEntities = { entities: 0, versions: 0 }
    while (true) {
      const found = yield* page(kind, after)
      if (found === undefined || found.last === null) return sum
      sum = {
        entities: sum.entities + found.entities,
        versions: sum.versions + found.versions
      }
      tell(
        found.faults.map((fault) => ({ ...fault, kind })),
        found.faultCount - found.faults.length
      )
      after = found.last
    }
  }, orDie)

  return { verify }
})

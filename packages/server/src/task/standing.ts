/**
 * What a suggested change meets in the graph, as part of a select of tasks.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * One expression for a list, before the click, and for the approval, which holds
 * the target meanwhile. Each kind of change asks only what concerns it, by index
 * and bounded, and nothing is asked of what is decided.
 */
import {
  type Capabilities,
  denies,
  deniesCascade,
  narrow,
  type Powers,
  type RelationshipKind
} from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { ProjectId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { type AddedRelationship, type Standing, stalenessBounds } from "@tropism/domain/staleness"
import type { SuggestionTask } from "@tropism/domain/task"
import type { SqlClient, Statement } from "effect/sql"
import { explainDenial } from "../graph/authority.ts"

/** What is asked of each task of a select. */
export interface Question {
  /** Which tasks it is asked of. */
  readonly isAsked: Statement.Fragment
  /** The version that was seen. */
  readonly base: Statement.Fragment
  /** Of the relationships at an object, how many are looked at on either side, newest first; null is all. */
  readonly aroundLook: number | null
}

/** What the database found. */
export interface Found {
  /** What the base says, where it is not the present. */
  readonly base?: Properties | null
  readonly lacksEnd?: boolean
  readonly added?: ReadonlyArray<AddedRelationship> | null
  readonly takenBy?: string | null
}

/** A JSON value for each task, for a statement that has `task`, `target` and `relationship`. */
export const foundStanding = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { aroundLook, base, isAsked }: Question
) => {
  const said = (path: string) => sql.literal(`(task.payload #>> '{suggestedChanges,${path}}')`)
  const isLive = (id: Statement.Fragment) => sql`exists (
    select 1 from kb.graph_objects one where one.id = ${id} and one.project_id = ${projectId} and one.deleted_at is null)`
  const objectBase = sql`
    'base', (select properties from kb.graph_object_versions was
      where was.object_id = target.id and was.version = ${base} and was.version <> target.version)`
  const around = (end: "from" | "to") => sql`(
    select id, type, from_id, to_id from kb.graph_relationships one
    where one.${sql.literal(end)}_id = task.target_id and one.deleted_at is null order by id desc limit ${aroundLook}::int)`
  return sql`
    case when not (${isAsked}) then null else case task.type
      when 'object_create_suggestion' then jsonb_build_object('takenBy', (
        select id from kb.graph_objects one where one.project_id = ${projectId} and one.type = ${said("objectType")}
          and one.key = ${said("key")} and one.deleted_at is null))
      when 'object_update_suggestion' then jsonb_build_object(${objectBase})
      when 'object_delete_suggestion' then jsonb_build_object(${objectBase}, 'added', (
        select jsonb_agg(jsonb_build_object('id', one.id, 'type', one.type, 'fromId', one.from_id, 'toId', one.to_id) order by one.id)
        from (${around("from")} union ${around("to")}) one
        cross join lateral (
          select actor_type, actor_id, event_id from kb.graph_relationship_versions version
          where version.relationship_id = one.id and version.type = 'created' order by version.version desc limit 1
        ) made
        join kb.graph_events event on event.id = made.event_id
        where (made.actor_type <> 'agent' or made.actor_id is distinct from task.agent_id::text)
          and case when task.seen_position is null then event.created_at > task.created_at
            else event.position is null or event.position > task.seen_position end))
      when 'relationship_create_suggestion' then jsonb_build_object(
        'lacksEnd', not (${isLive(sql`${said("relationship,fromId")}::uuid`)} and ${isLive(sql`${said("relationship,toId")}::uuid`)}),
        'takenBy', (select id from kb.graph_relationships one where one.project_id = ${projectId} and one.deleted_at is null
          and one.type = ${said("relationship,type")} and one.from_id = ${said("relationship,fromId")}::uuid
          and one.to_id = ${said("relationship,toId")}::uuid))
      else jsonb_build_object('base', (select properties from kb.graph_relationship_versions was
        where was.relationship_id = relationship.id and was.version = ${base} and was.version <> relationship.version))
    end end as found`
}

/** By what an approval will be judged: the powers of an agent and of those that it acts for, and what the change touches. */
export interface AtStake {
  readonly capabilities: Capabilities | null
  readonly above: ReadonlyArray<{ readonly name: string; readonly capabilities: Capabilities | null }>
  readonly types: ReadonlyArray<string>
  /** Of an object to delete: the kinds of relationships that would go with it, in the order in which the gateway judges them. */
  readonly around: ReadonlyArray<RelationshipKind>
}

/**
 * What judges each suggestion that waits, as a JSON value; null where nobody's rights are bounded.
 *
 * **Details** For a statement that has `task`, `agent`, `target` and `relationship`. An agent acts for few others, as deep as runs
 * may spawn runs. Of the relationships at an object to delete it reads as many as staleness does, and the approval reads all.
 */
export const rightsAtStake = (sql: SqlClient.SqlClient, projectId: ProjectId) => {
  const said = (path: string) => sql.literal(`(task.payload #>> '{suggestedChanges,${path}}')::uuid`)
  const endTypes = (from: Statement.Fragment, to: Statement.Fragment) => sql`(
    select jsonb_agg(one.type order by one.id) from kb.graph_objects one
    where one.project_id = ${projectId} and one.id in (${from}, ${to}))`
  const around = (end: "from" | "to") => sql`(
    select type, from_id, to_id from kb.graph_relationships one where one.${sql.literal(end)}_id = target.id and one.deleted_at is null
    order by id desc limit ${stalenessBounds.lookedRelationships})`
  const bounding = sql`
    select distinct above.id, above.name, above.capabilities from kb.agent_runs run
    join kb.agent_runs ancestor on ancestor.id = any(run.ancestors) join kb.agents above on above.id = ancestor.agent_id
    where run.id = task.run_id and run.parent_run_id is not null and above.id <> agent.id`
  return sql`
    case when task.status = 'pending' and task.payload ? 'suggestedChanges'
      and (agent.capabilities is not null or exists (select from (${bounding}) above where above.capabilities is not null))
    then jsonb_build_object(
      'capabilities', agent.capabilities,
      'above', (select coalesce(jsonb_agg(jsonb_build_object('name', above.name, 'capabilities', above.capabilities) order by above.id), '[]')
        from (${bounding}) above),
      'types', coalesce(case task.type
        when 'object_create_suggestion' then jsonb_build_array(task.payload #> '{suggestedChanges,objectType}')
        when 'relationship_create_suggestion' then ${endTypes(said("relationship,fromId"), said("relationship,toId"))}
        when 'relationship_update_suggestion' then ${endTypes(sql`relationship."fromId"`, sql`relationship."toId"`)}
        when 'relationship_delete_suggestion' then ${endTypes(sql`relationship."fromId"`, sql`relationship."toId"`)}
        else (select jsonb_build_array(target.type) where target.id is not null) end, '[]'),
      'around', case when task.type = 'object_delete_suggestion' then (
        select coalesce(jsonb_agg(jsonb_build_object('type', kind.type, 'fromType', kind.from_type, 'toType', kind.to_type)
          order by kind.type, kind.from_type, kind.to_type), '[]')
        from (select distinct one.type, start.type as from_type, finish.type as to_type from (${around("from")} union ${around("to")}) one
          join kb.graph_objects start on start.id = one.from_id join kb.graph_objects finish on finish.id = one.to_id) kind
      ) else '[]' end
    ) end as rights`
}

/** Why the rights of an agent, and of those that it acts for, forbid a change; null where they permit it. */
export const denialOf = (change: Change, { above, around, capabilities, types }: AtStake): string | null => {
  const own: Powers = { capabilities, executionMode: "suggest", hybridPolicy: null }
  const powers = above.reduce<Powers>((all, one) => narrow(all, { ...own, ...one }), own)
  const denial = denies(powers.capabilities, change.type, types) ?? deniesCascade(powers.capabilities, around)
  return denial === undefined ? null : explainDenial({ actsFor: above.map(({ name }) => name) }, denial)
}

/** The objects that the run had read and that are others now, for each task: by the newest version that it had read. */
export const changedEvidence = (sql: SqlClient.SqlClient, projectId: ProjectId) => sql`
    case when task.status = 'pending' then (
      select jsonb_agg(jsonb_build_object('objectId', read.id, 'type', read.type, 'version', read.version, 'currentVersion', now_is.live_version)
        order by read.id)
      from (
        select "objectId" as id, min(type) as type, max(version) as version
        from jsonb_to_recordset(task.evidence) as read("objectId" uuid, type text, version int) group by 1
      ) read
      left join lateral (
        select version, case when deleted_at is null then version end as live_version from kb.graph_objects object
        where object.id = read.id and object.project_id = ${projectId} limit 1
      ) now_is on true
      where now_is.version is distinct from read.version
    ) end as evidence_changed`

/** A suggestion with what was found of it. */
export interface Asked extends Pick<SuggestionTask, "type" | "baseVersion" | "target" | "relationship"> {
  readonly found: Found
}

/** Says what was found in the words of the rule. */
export const standingOf = ({ baseVersion, found, relationship, target, type }: Asked): Standing => {
  const isNew = type === "object_create_suggestion" || type === "relationship_create_suggestion"
  const current = target ?? relationship
  return {
    current,
    base:
      isNew || baseVersion === null
        ? null
        : {
            version: baseVersion,
            properties: current?.version === baseVersion ? current.properties : (found.base ?? {})
          },
    isGone: isNew ? found.lacksEnd === true : current === null,
    added: found.added ?? [],
    takenBy: found.takenBy ?? null
  }
}

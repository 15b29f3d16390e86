/**
 * The graph as a store: versions of relationships, merge patches and searches
 * done by the database, and purging.
 *
 * Everything is added; a program of the version before goes on working. The
 * relationships that are there get their versions from their events.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/**
 * RFC 7396, as `mergePatch` of the domain: null removes, objects merge, all else replaces.
 *
 * In plpgsql, which keeps its plan between calls in every version of PostgreSQL.
 */
const mergePatch = `
  create function kb.merge_patch(target jsonb, patch jsonb) returns jsonb language plpgsql immutable parallel safe as $$
  begin
    if jsonb_typeof(patch) is distinct from 'object' then
      return patch;
    end if;
    return ((case when jsonb_typeof(target) = 'object' then target else '{}' end)
      - array(select key from jsonb_each(patch) where value = 'null'))
      || coalesce((
        select jsonb_object_agg(key, case jsonb_typeof(value) when 'object' then kb.merge_patch(target -> key, value) else value end)
        from jsonb_each(patch) where value <> 'null'), '{}');
  end $$`

/**
 * The words of a text for the full-text search, which \`search-words.ts\` finds in a query in the same way.
 *
 * Punctuation separates words: the parser would take \`node_modules/left-pad\` for the name of a file.
 */
const searchWords = String.raw`
  create function kb.search_words(content text) returns text language sql immutable parallel safe as $$
    select regexp_replace(lower(content), '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u2000-\u206f\u3000-\u3020]+', ' ', 'g')
  $$`

/** Key before type before the texts and numbers of the properties; a longer number is no word that anybody types. */
const searchVector = `
  create function kb.search_vector(type text, key text, properties jsonb) returns tsvector language sql immutable parallel safe as $$
    select setweight(to_tsvector('simple', kb.search_words(coalesce(key, ''))), 'A')
      || setweight(to_tsvector('simple', kb.search_words(type)), 'B')
      || setweight(to_tsvector('simple', kb.search_words(coalesce((
        select string_agg(found #>> '{}', ' ')
        from jsonb_path_query(properties, 'strict $.** ? (@.type() == "string" || @.type() == "number")') found
        where jsonb_typeof(found) = 'string' or length(found #>> '{}') <= 20), ''))), 'C')
  $$`

const versions = [
  // Rights come from the policy below; the project is the relationship's, so it needs no key of its own.
  `create table kb.graph_relationship_versions (
    relationship_id uuid not null references kb.graph_relationships,
    version integer not null,
    project_id uuid not null,
    type text not null check (type in ('created', 'updated', 'deleted')),
    properties jsonb not null,
    actor_type varchar(20) not null,
    actor_id text,
    approved_by text,
    run_id uuid,
    tool_call_id uuid,
    task_id uuid,
    event_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (relationship_id, version)
  )`,
  `insert into kb.graph_relationship_versions
    select entity_id, version, project_id, type, snapshot -> 'properties', actor_type, actor_id, approved_by, run_id, tool_call_id,
      task_id, id, created_at
    from kb.graph_events where entity_type = 'relationship'`
]

const searches = [
  mergePatch,
  searchWords,
  searchVector,
  `alter table kb.graph_objects
    add column search tsvector generated always as (kb.search_vector(type, key, properties)) stored,
    add column purged_at timestamptz`,
  // A short pending list: whoever writes past its end must not tidy megabytes.
  `create index graph_objects_search on kb.graph_objects using gin (search) with (gin_pending_list_limit = 256) where deleted_at is null`,
  `create index graph_objects_properties on kb.graph_objects using gin (properties jsonb_path_ops) with (gin_pending_list_limit = 256)
    where deleted_at is null`,
  `create index graph_objects_updated on kb.graph_objects (project_id, updated_at, id) where deleted_at is null`,
  // Reads as of a time see what was deleted since.
  `create index graph_objects_history on kb.graph_objects (project_id, id)`,
  `create index graph_relationships_history on kb.graph_relationships (project_id, id)`,
  // By id within an end: a bounded look at a hub reads as much as it answers, whatever the planner believes of hubs.
  ...["from", "to"].flatMap((end) => [
    `drop index kb.graph_relationships_${end}`,
    `create index graph_relationships_${end} on kb.graph_relationships (${end}_id, id) where deleted_at is null`,
    `create index graph_relationships_${end}_deleted on kb.graph_relationships (${end}_id, id) where deleted_at is not null`
  ]),
  // A policy hides rows behind a barrier through which only leakproof operators pass, and neither @@ nor @> is
  // one, so no index would serve them. The owner's view names the project itself and has no such barrier.
  `create view kb.project_objects as
    select id, project_id, type, key, properties, version, actor_type, actor_id, created_at, updated_at, search
    from kb.graph_objects where project_id = (select ${currentProject}) and deleted_at is null`
]

/** What is left of an object or relationship that a person removed for good. */
const purges = [
  `create table kb.graph_purges (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    entity_type text not null check (entity_type in ('graphObject', 'relationship')),
    entity_id uuid not null unique,
    object_type text not null,
    purged_by text,
    versions integer not null,
    relationships integer not null,
    purged_at timestamptz not null default now()
  )`,
  `create index graph_purges_list on kb.graph_purges (project_id, id)`
]

/** An event stays, because others descend from it; what it says of the entity goes. */
const blankEvents = (condition: string): string => `
  update kb.graph_events set snapshot = jsonb_build_object(
      'id', entity_id, 'type', object_type, 'properties', '{}'::jsonb, 'version', version, 'purged', true)
  where ${condition};`

/**
 * Removes a deleted object with its relationships, versions and processing entries.
 *
 * The row stays as a tombstone without content: events that nobody has dispatched yet still refer to it.
 */
const purgeObject = `
  create function kb.purge_object(purge_id uuid, purged uuid, purger text) returns boolean
  language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := ${currentProject};
    purged_type text;
    ends uuid[];
    ended integer;
  begin
    update kb.graph_objects set key = null, properties = '{}', purged_at = now()
    where id = purged and project_id = project and deleted_at is not null and purged_at is null returning type into purged_type;
    if not found then
      return false;
    end if;
    ends := array(select id from kb.graph_relationships where from_id = purged and deleted_at is not null
      union select id from kb.graph_relationships where to_id = purged and deleted_at is not null);
    ${blankEvents("entity_id = purged or entity_id = any (ends)")}
    delete from kb.graph_relationship_versions where relationship_id = any (ends);
    delete from kb.graph_relationships where id = any (ends);
    delete from kb.agent_processing_log where graph_object_id = purged or graph_object_id = any (ends);
    delete from kb.graph_object_versions where object_id = purged;
    get diagnostics ended = row_count;
    insert into kb.graph_purges (id, project_id, entity_type, entity_id, object_type, purged_by, versions, relationships)
    values (purge_id, project, 'graphObject', purged, purged_type, purger, ended, cardinality(ends));
    return true;
  end $$`

const purgeRelationship = `
  create function kb.purge_relationship(purge_id uuid, purged uuid, purger text) returns boolean
  language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := ${currentProject};
    purged_type text;
    ended integer;
  begin
    select type into purged_type from kb.graph_relationships
    where id = purged and project_id = project and deleted_at is not null for update;
    if not found then
      return false;
    end if;
    ${blankEvents("entity_id = purged")}
    delete from kb.agent_processing_log where graph_object_id = purged;
    delete from kb.graph_relationship_versions where relationship_id = purged;
    get diagnostics ended = row_count;
    delete from kb.graph_relationships where id = purged;
    insert into kb.graph_purges (id, project_id, entity_type, entity_id, object_type, purged_by, versions, relationships)
    values (purge_id, project, 'relationship', purged, purged_type, purger, ended, 0);
    return true;
  end $$`

const tenantTables = ["graph_relationship_versions", "graph_purges"] as const

const rights = [
  ...tenantTables.flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`
  ]),
  `revoke all on function kb.purge_object(uuid, uuid, text), kb.purge_relationship(uuid, uuid, text) from public`,
  `grant execute on function kb.purge_object(uuid, uuid, text), kb.purge_relationship(uuid, uuid, text) to tropism_server`,
  `grant select on kb.project_objects, kb.graph_purges to tropism_server`,
  // History is written once: the server itself can neither change nor remove a version.
  `grant select, insert on kb.graph_relationship_versions to tropism_server`,
  `revoke update on kb.graph_object_versions from tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  ...versions,
  ...searches,
  ...purges,
  purgeObject,
  purgeRelationship,
  ...rights
]

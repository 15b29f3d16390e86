/**
 * Names of properties: a purge leaves none, and which version set each stands with the object.
 *
 * What an event says that changed is content, too. And what agents made of an object is found by its events, which have an index:
 * an object had none in the whole log. Everything else of a purge is as before.
 *
 * Which version set a property was found by looking at every event of the object. Now each update keeps it, whichever version of
 * the program makes it; an object of before gets it with its next one, and until then its events are looked at as they were.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** What the events of these say of them goes, and what agents made of it; an event stays, because others descend from it. */
const blank = (entities: string): string => `
    told := array(select id from kb.graph_events where entity_id = any (${entities}));
    update kb.graph_events set changed_properties = '{}', snapshot = jsonb_build_object(
        'id', entity_id, 'type', object_type, 'properties', '{}'::jsonb, 'version', version, 'purged', true)
    where id = any (told);
    delete from kb.agent_processing_log where event_id = any (told);`

const purgeObject = `
  create or replace function kb.purge_object(purge_id uuid, purged uuid, purger text) returns boolean
  language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := ${currentProject};
    purged_type text;
    ends uuid[];
    told uuid[];
    ended integer;
  begin
    update kb.graph_objects set key = null, properties = '{}', purged_at = now()
    where id = purged and project_id = project and deleted_at is not null and purged_at is null returning type into purged_type;
    if not found then
      return false;
    end if;
    ends := array(select id from kb.graph_relationships where from_id = purged and deleted_at is not null
      union select id from kb.graph_relationships where to_id = purged and deleted_at is not null);
    ${blank("purged || ends")}
    delete from kb.graph_relationship_versions where relationship_id = any (ends);
    delete from kb.graph_relationships where id = any (ends);
    delete from kb.graph_object_versions where object_id = purged;
    get diagnostics ended = row_count;
    insert into kb.graph_purges (id, project_id, entity_type, entity_id, object_type, purged_by, versions, relationships)
    values (purge_id, project, 'graphObject', purged, purged_type, purger, ended, cardinality(ends));
    return true;
  end $$`

const purgeRelationship = `
  create or replace function kb.purge_relationship(purge_id uuid, purged uuid, purger text) returns boolean
  language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := ${currentProject};
    purged_type text;
    told uuid[];
    ended integer;
  begin
    select type into purged_type from kb.graph_relationships
    where id = purged and project_id = project and deleted_at is not null for update;
    if not found then
      return false;
    end if;
    ${blank("array[purged]")}
    delete from kb.graph_relationship_versions where relationship_id = purged;
    get diagnostics ended = row_count;
    delete from kb.graph_relationships where id = purged;
    insert into kb.graph_purges (id, project_id, entity_type, entity_id, object_type, purged_by, versions, relationships)
    values (purge_id, project, 'relationship', purged, purged_type, purger, ended, 0);
    return true;
  end $$`

/** What purges of before left; where nothing was purged no event is looked at. */
export const purgedBefore = `
  update kb.graph_events set changed_properties = '{}'
  where project_id in (select project_id from kb.graph_purges) and changed_properties <> '{}' and snapshot @> '{"purged": true}'`

/**
 * Of the properties that are there, those that a version after the first set, with that version.
 *
 * An object that was made and not changed since has none, so making one costs nothing. Null beside a later version: nobody knows.
 */
const propertyVersions = [
  `alter table kb.graph_objects add column property_versions jsonb`,
  `create function kb.keep_property_versions() returns trigger language plpgsql as $$
  declare
    known jsonb := coalesce(old.property_versions, '{}');
  begin
    if old.property_versions is null and old.version > 1 then
      -- Once for an object of before. A restoration sets nothing.
      known := (select jsonb_object_agg(property, version) from (
        select property, max(version) as version from kb.graph_events, unnest(changed_properties) property
        where entity_id = old.id and project_id = old.project_id and (type <> 'created' or version = 1) group by property
      ) newest);
    end if;
    new.property_versions := (
      select coalesce(jsonb_object_agg(name, version), '{}') from (
        select present.key as name, case
          when was.value is distinct from present.value or (present.key = any (old.untrusted)) <> (present.key = any (new.untrusted)) then new.version
          else (known ->> present.key)::integer end as version
        from jsonb_each(new.properties) present left join jsonb_each(old.properties) was on was.key = present.key
      ) each_property where version > 1);
    return new;
  end $$`,
  `create trigger keep_property_versions before update of properties, untrusted on kb.graph_objects
    for each row when (old.properties is distinct from new.properties or old.untrusted is distinct from new.untrusted)
    execute function kb.keep_property_versions()`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  purgeObject,
  purgeRelationship,
  purgedBefore,
  ...propertyVersions
]

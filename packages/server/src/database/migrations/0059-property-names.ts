/**
 * A purge leaves no names of properties: what an event says that changed is content, too.
 *
 * And what was made of an object is found by its events, which have an index: an object had none among all that agents handled.
 * Everything else of a purge is as before.
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

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [purgeObject, purgeRelationship, purgedBefore]

/**
 * Values of untrusted sources, marked; and the contexts that were shown some.
 *
 * All that is there already is trusted, and no context tainted. Everything is added; a program of the
 * version before goes on working, and what it writes keeps the marks of before.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** As `marksAfter` of the domain: a mark stays where the patch leaves something of the value standing. */
const marksAfter = `
  create function kb.marks_after(marked text[], patch jsonb, after jsonb, untrusted text[]) returns text[]
  language plpgsql immutable parallel safe as $$
  begin
    if marked = '{}' and untrusted = '{}' then
      return marked;
    end if;
    return array(
      select name from (
        select unnest(untrusted) as name
        union
        select name from unnest(marked) name
        where not patch ? name or kb.merge_patch(null, patch -> name) is distinct from after -> name
      ) mark where after ? name order by name collate "C");
  end $$`

/** The names of properties are content too. The row stays as a tombstone, as before. */
const clearedWhenPurged = [
  `create function kb.unmark_purged() returns trigger language plpgsql as $$
  begin
    new.untrusted := '{}';
    return new;
  end $$`,
  `create trigger unmark_purged before update of purged_at on kb.graph_objects
    for each row when (old.purged_at is null and new.purged_at is not null) execute function kb.unmark_purged()`
]

/** What a context is tainted by after it was shown more: the first sources, each once, with the event of the log. As `taintBounds` of the domain. */
const withTaint = `
  create function kb.with_taint(known jsonb, sources jsonb, place integer) returns jsonb
  language sql immutable parallel safe as $$
    select coalesce(known, '[]') || coalesce((
      select jsonb_agg(source || jsonb_build_object('at', place) order by number) from (
        select source, number from jsonb_array_elements(sources) with ordinality as listed(source, number)
        where not exists (select 1 from jsonb_array_elements(coalesce(known, '[]')) old where old - 'at' = source - 'at')
        order by number limit greatest(0, 8 - jsonb_array_length(coalesce(known, '[]')))
      ) news), '[]')
  $$`

/** A taint never ends: what a context was shown it keeps, whoever writes the row. */
const keptTaint = [
  `create function kb.keep_taint() returns trigger language plpgsql as $$
  begin
    raise exception 'The context % was shown something untrusted, and that stays', old.name using errcode = 'TR001';
  end $$`,
  `create trigger keep_taint before update of tainted_by on kb.contexts
    for each row when (old.tainted_by is not null and (new.tainted_by @> old.tainted_by) is not true) execute function kb.keep_taint()`
]

const markedTables = [
  "graph_objects",
  "graph_object_versions",
  "graph_relationships",
  "graph_relationship_versions"
] as const

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  ...markedTables.map((table) => `alter table kb.${table} add column untrusted text[] not null default '{}'`),
  `grant update (untrusted) on kb.graph_objects, kb.graph_relationships to tropism_server`,
  marksAfter,
  withTaint,
  // Null where nothing untrusted was shown.
  `alter table kb.contexts add column tainted_by jsonb`,
  ...keptTaint,
  // What the run of a suggestion had read then.
  `alter table kb.tasks add column untrusted jsonb not null default '[]'`,
  `alter table kb.attachments add column untrusted boolean not null default false`,
  `grant update (untrusted) on kb.attachments to tropism_server`,
  `alter table kb.webhooks add column untrusted boolean not null default false`,
  ...clearedWhenPurged,
  `create or replace view kb.project_objects as
    select id, project_id, type, key, properties, version, actor_type, actor_id, created_at, updated_at, search, untrusted
    from kb.graph_objects where project_id = (select ${currentProject}) and deleted_at is null`
]

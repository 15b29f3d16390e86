/**
 * A project that is made of a dump: its rows are written with the owner's rights, past the wall of 0017.
 *
 * Only into a project that the same transaction has made, so nothing that is
 * there can be written around the gateway; and before it ends, every row refers
 * to rows of its own project.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const raise = (sentence: string): string => `raise exception using errcode = 'TR001', message = ${sentence};`

const definer = (
  signature: string,
  returns: string,
  declared: string,
  body: string
): ReadonlyArray<string> => [
  `create function kb.${signature} returns ${returns} language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := ${currentProject};
    ${declared}
  begin
    ${body}
  end $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const tables = [
  `create table kb.restores (
    project_id uuid primary key references kb.projects,
    -- The transaction that made the project: it alone may write what was dumped.
    made_in xid8 not null default pg_current_xact_id(),
    dump_digest text not null,
    taken_at timestamptz not null,
    restored_by text not null,
    restored_at timestamptz not null default now()
  )`,
  // Which ids are those of the rows that come; empty when the restore ends.
  `create table kb.restored_ids (
    project_id uuid not null references kb.projects,
    id uuid not null,
    primary key (project_id, id)
  )`,
  ...["restores", "restored_ids"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`
  ]),
  `grant select on kb.restores to tropism_server`,
  `grant select, insert, delete on kb.restored_ids to tropism_server`
]

const isOurs = `
    if not exists (select from restores where project_id = project and made_in = pg_current_xact_id()) then
      ${raise("'Rows are restored into a project that the same transaction made, and into no other'")}
    end if;`

/** Tables of projects' rows that no dump has. */
const neverRestored = [
  "restores",
  "restored_ids",
  "idempotency_keys",
  "event_subscriptions",
  "resource_subscriptions"
]

const functions = [
  ...definer(
    "begin_restore(new_name text, new_settings jsonb, digest text, dumped_at timestamptz, restorer text)",
    "void",
    "",
    `
    insert into projects (id, name, created_by, settings) values (project, new_name, restorer, new_settings);
    insert into restores (project_id, dump_digest, taken_at, restored_by) values (project, digest, dumped_at, restorer);`
  ),
  ...definer(
    "is_any_restored_id_taken()",
    "boolean",
    `place regclass;
    is_taken boolean;`,
    `${isOurs}
    for place in
      select attrelid from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'kb'::regnamespace and relkind = 'r' and attname = 'id' and atttypid = 'uuid'::regtype and not attisdropped
        and relname <> 'restored_ids'
    loop
      execute format('select exists (select from kb.restored_ids mine join %s other on other.id = mine.id where mine.project_id = $1)', place)
        into is_taken using project;
      if is_taken then
        return true;
      end if;
    end loop;
    return exists (select from restored_ids mine join graph_purges other on other.entity_id = mine.id where mine.project_id = project);`
  ),
  ...definer(
    "restore_rows(target text, columns text[], dumped jsonb)",
    "void",
    `place regclass := to_regclass('kb.' || quote_ident(target));
    named text := (select string_agg(quote_ident(one), ', ') from unnest(columns) one);`,
    `${isOurs}
    if place is null or target in (${neverRestored.map((name) => `'${name}'`).join(", ")})
      or not exists (select from pg_attribute where attrelid = place and attname = 'project_id' and not attisdropped) then
      ${raise("format('No rows of %s are restored', target)")}
    end if;
    if exists (select from jsonb_array_elements(dumped) one where one ->> 'project_id' is distinct from project::text) then
      ${raise("format('A row of %s is of another project', target)")}
    end if;
    execute format('insert into %s (%s) select %s from jsonb_populate_recordset(null::%s, $1)', place, named, named, place) using dumped;`
  ),
  // A reference of a row to a row of another project is no reference of the dump's.
  ...definer(
    "check_restored_references()",
    "void",
    `reference record;
    is_foreign boolean;`,
    `${isOurs}
    for reference in
      select conrelid::regclass as child, confrelid::regclass as parent, c.attname as child_column, p.attname as parent_column
      from pg_constraint
      join pg_attribute c on c.attrelid = conrelid and c.attnum = conkey[1]
      join pg_attribute p on p.attrelid = confrelid and p.attnum = confkey[1]
      where contype = 'f' and connamespace = 'kb'::regnamespace and cardinality(conkey) = 1 and confrelid <> 'projects'::regclass
        and exists (select from pg_attribute where attrelid = conrelid and attname = 'project_id' and not attisdropped)
        and exists (select from pg_attribute where attrelid = confrelid and attname = 'project_id' and not attisdropped)
    loop
      execute format('select exists (select from %s child join %s parent on parent.%I = child.%I where child.project_id = $1 and parent.project_id <> $1)',
        reference.child, reference.parent, reference.parent_column, reference.child_column) into is_foreign using project;
      if is_foreign then
        ${raise("format('A row of %s refers to a row of another project', reference.child)")}
      end if;
    end loop;`
  )
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...functions]

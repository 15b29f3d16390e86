/**
 * Rows are kept in the order of their ids within a project, and in no order over all projects.
 *
 * While the primary key was the id, PostgreSQL took it to read the newest rows of a project, or the first that wait, wherever a
 * project had a good part of a table: it takes them to be spread evenly, and walked over all that another project has before or
 * behind them. An index with its nulls first finds a row by its id and serves no order that anybody asks for.
 */

/** Each table with the columns of its key, and the index that the key replaces. */
const keys = [
  { table: "agent_runs", columns: "project_id, id", replaces: "agent_runs_list" },
  { table: "tasks", columns: "project_id, owner, number", replaces: "tasks_number" },
  { table: "graph_objects", columns: "project_id, id", replaces: "graph_objects_history" },
  { table: "graph_relationships", columns: "project_id, id", replaces: "graph_relationships_history" },
  { table: "agent_processing_log", columns: "agent_id, id", replaces: "agent_processing_log_list" },
  { table: "denials", columns: "project_id, id", replaces: "denials_list" }
] as const

const tables = keys.map(({ table }) => `'kb.${table}'::regclass`).join(", ")

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create temporary table pointing on commit drop as
    select conname, conrelid::regclass::text as from_table, pg_get_constraintdef(oid) as definition from pg_constraint
    where contype = 'f' and confrelid in (${tables}) and conparentid = 0`,
  `do $$
  declare
    one record;
  begin
    for one in select * from pointing loop
      execute format('alter table %s drop constraint %I', one.from_table, one.conname);
    end loop;
  end $$`,
  ...keys.flatMap(({ columns, replaces, table }) => [
    `alter table kb.${table} drop constraint ${table}_pkey`,
    `create unique index ${table}_id on kb.${table} (id nulls first)`,
    `drop index kb.${replaces}`,
    `alter table kb.${table} add primary key (${columns})`
  ]),
  `do $$
  declare
    one record;
  begin
    for one in select * from pointing loop
      execute format('alter table %s add constraint %I %s', one.from_table, one.conname, one.definition);
    end loop;
  end $$`
]

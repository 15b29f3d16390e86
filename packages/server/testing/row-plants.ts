/**
 * A row of a project in every table, whatever columns the table has.
 *
 * For tests of what row-level security shows: what a row says does not matter
 * there, only whose it is. It takes away what else the database asks of a row,
 * so the database serves nobody afterwards; no server may run on it.
 */
import { Effect } from "effect"
import { connect, type PostgresAccess } from "../src/database/postgres-access.ts"

/** Takes away the checks and keys that ask more of a row than its columns. */
const loosen = `do $$ declare found record; begin
  for found in select conrelid::regclass as place, quote_ident(conname) as name from pg_constraint
    where connamespace = 'kb'::regnamespace and contype in ('c', 'f') and conparentid = 0 and conrelid <> 0
  loop execute format('alter table %s drop constraint %s', found.place, found.name); end loop;
  for found in select oid::regclass as place from pg_class where relnamespace = 'kb'::regnamespace and relkind = 'r'
  loop execute format('alter table %s disable trigger user', found.place); end loop;
end $$`

/** Fills a table where the project has no row in it: each column that must have a value gets the plainest of its type. */
const plant = (projectId: string) => `do $$ declare
  planted record; names text; wanted text; present boolean;
begin
  for planted in select oid, relname from pg_class c where relnamespace = 'kb'::regnamespace and relkind = 'r'
    and exists (select 1 from pg_attribute where attrelid = c.oid and attname = 'project_id')
  loop
    execute format('select exists (select 1 from kb.%I where project_id = $1)', planted.relname) into present using '${projectId}'::uuid;
    continue when present;
    select string_agg(quote_ident(attname), ', ' order by attnum), string_agg(case
        when attname = 'project_id' then quote_literal('${projectId}')
        when atttypid = 'uuid'::regtype then 'gen_random_uuid()'
        when atttypid in ('timestamptz'::regtype, 'date'::regtype) then 'now()'
        when atttypid in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'float8'::regtype) then '1'
        when atttypid = 'bool'::regtype then 'false'
        when atttypid in ('jsonb'::regtype, 'json'::regtype) then '''{}'''
        when atttypid = 'interval'::regtype then '''1 second'''
        when typcategory = 'A' then '''{}'''
        else quote_literal('planted') end, ', ' order by attnum)
      into names, wanted
      from pg_attribute join pg_type on pg_type.oid = atttypid
      where attrelid = planted.oid and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''
        and (attname = 'project_id' or (attnotnull and not atthasdef));
    execute format('insert into kb.%I (%s) values (%s)', planted.relname, names, wanted);
  end loop;
end $$`

/** Plants what is missing of these projects. */
export const plantRows = (access: PostgresAccess, projectIds: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const owner = yield* connect(access.ownerUrl)
      yield* owner.query(loosen)
      for (const projectId of projectIds) yield* owner.query(plant(projectId))
    })
  ).pipe(Effect.orDie)

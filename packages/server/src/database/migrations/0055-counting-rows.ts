/**
 * Lets the server have the rows of young tables counted before PostgreSQL's own round comes by.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Of a table that was never counted four pages are as many as none. Whoever counts one already is left to it.
  `create function kb.count_grown_tables() returns void language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    grown regclass;
  begin
    for grown in
      select oid from pg_class where relnamespace = 'kb'::regnamespace and relkind = 'r'
        and pg_relation_size(oid) > 2 * greatest(relpages, 4) * current_setting('block_size')::bigint
    loop
      execute format('analyze (skip_locked) %s', grown);
    end loop;
  end $$`,
  "revoke all on function kb.count_grown_tables() from public",
  "grant execute on function kb.count_grown_tables() to tropism_server"
]

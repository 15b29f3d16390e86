/**
 * A page of a dump ends after so many bytes, whatever the next rows have.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Rows that were fetched together would all be on their way before anybody knew how large they are.
  `create function kb.fetch_page(portal refcursor, most_rows integer, most_bytes integer) returns setof text language plpgsql as $$
  declare
    line text;
    bytes bigint := 0;
  begin
    for number in 1..most_rows loop
      fetch portal into line;
      exit when not found;
      return next line;
      bytes := bytes + octet_length(line);
      exit when bytes >= most_bytes;
    end loop;
  end $$`
]

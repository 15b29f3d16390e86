/**
 * A write of an object costs less: what is computed from its row keeps its plan, and what nobody asks by is not counted.
 *
 * A function in SQL is parsed and planned anew for each statement that writes a
 * row with a generated column or an index of its; one in plpgsql once for each
 * connection. The values are the same, so neither the column nor the indexes are
 * made again.
 */

/** As in `0002-graph.ts`. */
const searchVector = `
  create or replace function kb.search_vector(type text, key text, properties jsonb) returns tsvector
  language plpgsql immutable parallel safe as $$
  begin
    return setweight(to_tsvector('simple', kb.search_words(coalesce(key, ''))), 'A')
      || setweight(to_tsvector('simple', kb.search_words(type)), 'B')
      || setweight(to_tsvector('simple', kb.search_words(coalesce((
        select string_agg(word #>> '{}', ' ')
        from jsonb_path_query(properties, 'strict $.** ? (@.type() == "string" || @.type() == "number")') word
        where jsonb_typeof(word) = 'string' or length(word #>> '{}') <= 20), ''))), 'C');
  end $$`

/** As in `0054-object-names.ts`. */
const sortingName = String.raw`
  create or replace function kb.sorting_name(key text, properties jsonb) returns text
  language plpgsql immutable parallel safe as $$
  begin
    return lower(left(coalesce(
      key,
      case when jsonb_typeof(properties -> 'name') = 'string' and properties ->> 'name' ~ '\S' then properties ->> 'name' end,
      case when jsonb_typeof(properties -> 'title') = 'string' and properties ->> 'title' ~ '\S' then properties ->> 'title' end,
      case when jsonb_typeof(properties -> 'label') = 'string' and properties ->> 'label' ~ '\S' then properties ->> 'label' end,
      chr(1114111)), 100));
  end $$`

/** No read chooses rows by these, and to sort a sample of them takes a third of the time that PostgreSQL needs to know a table that grows. */
const neverAskedBy = {
  graph_events: ["snapshot", "changed_properties"],
  graph_objects: ["property_versions"],
  graph_object_versions: ["properties"],
  graph_relationship_versions: ["properties"]
}

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  searchVector,
  sortingName,
  ...Object.entries(neverAskedBy).flatMap(([table, columns]) =>
    columns.map((column) => `alter table kb.${table} alter column ${column} set statistics 0`)
  )
]

/**
 * Objects in the order of their names, and of their types: by an index each, so that a page costs what it shows.
 */

/**
 * What an object is sorted by: its key, else the first name it has, whatever its case; without any it comes last.
 *
 * The beginning of a long name is enough, and an index takes no longer one.
 */
const sortingName = String.raw`
  create function kb.sorting_name(key text, properties jsonb) returns text language sql immutable parallel safe as $$
    select lower(left(coalesce(
      key,
      case when jsonb_typeof(properties -> 'name') = 'string' and properties ->> 'name' ~ '\S' then properties ->> 'name' end,
      case when jsonb_typeof(properties -> 'title') = 'string' and properties ->> 'title' ~ '\S' then properties ->> 'title' end,
      case when jsonb_typeof(properties -> 'label') = 'string' and properties ->> 'label' ~ '\S' then properties ->> 'label' end,
      chr(1114111)), 100))
  $$`

/**
 * True of every row, and no read but a list in such an order says it.
 *
 * So nobody else is led to these indexes: in a young table, of which the planner knows nothing, any index that begins
 * with the project looks as good as the one of the key, and a lookup would read the whole project.
 */
const named = "deleted_at is null and kb.sorting_name(key, properties) is not null"

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  sortingName,
  `create index graph_objects_named on kb.graph_objects (project_id, (kb.sorting_name(key, properties) collate "C"), id)
    where ${named}`,
  `create index graph_objects_typed on kb.graph_objects (project_id, type, (kb.sorting_name(key, properties) collate "C"), id)
    where ${named}`
]

/**
 * The second wall: the database itself refuses a write of the graph that did not
 * come through the gateway, or that crosses a project.
 *
 * The gateway writes entity, version and event in one statement. Each of the
 * three is looked at when that statement is done, and refused with `TR001` when
 * the others are missing or say something else; an agent's write besides when no
 * run of that agent led to it, when it may only suggest and nobody approved, or
 * when the approval is not its own. What a row can never become is no column that
 * the server may write. The owner of the database, who migrates and mends it,
 * is not held; neither are the purges, which run with the owner's rights.
 *
 * And the record of what the gate before it has denied.
 */

/**
 * A function of the wall: names resolve in one place only, and its plans are made once, for tables that have grown.
 *
 * It sees what the server sees, so that row-level security holds in it too.
 */
const wall = (signature: string, returns: string, declared: string, body: string): string => `
  create function kb.${signature} returns ${returns} language plpgsql
  set search_path = kb, pg_temp set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
  declare
    ${declared}
  begin
    ${body}
  end $$`

const raise = (sentence: string): string => `raise exception using errcode = 'TR001', message = ${sentence};`

/**
 * Why an agent's write is refused; null when it is not.
 *
 * What a run has read (0020) and whether it is a backtest's (0021) are columns that come with the rest of this program's
 * schema, before any server writes.
 */
const agentsWrite = wall(
  "refused_agents_write(agent text, by_run uuid, by_task uuid, approver text)",
  "text",
  `line uuid[];
    is_tainted boolean;
    is_backtest boolean;`,
  `
    -- The run, below the runs that led to it by spawning: it may do no more than each of their agents.
    select run.ancestors || run.id, context.tainted_by is not null, run.backtest_id is not null into line, is_tainted, is_backtest
    from agent_runs run left join contexts context on context.project_id = run.project_id and context.name = run.context_name
    where run.id = by_run and run.agent_id::text = agent and (run.status = 'running' or by_task is not null);
    if not found then
      return 'no run of the agent is at work on it';
    end if;
    if is_backtest then
      return 'its run is a backtest''s, which changes nothing';
    end if;
    if by_task is not null or approver is not null then
      -- An approval is used in the transaction in which it is given.
      perform from tasks task
      where task.id = by_task and task.agent_id::text = agent and task.run_id = by_run and task.type like '%_suggestion'
        and task.status = 'completed' and task.resolved_by = approver and task.resolved_at = now();
      if not found then
        return 'no suggestion of the agent was approved for it';
      end if;
    elsif is_tainted then
      return 'its run has read something untrusted and may only suggest';
    elsif exists (
      select from agent_runs run join agents acting on acting.id = run.agent_id
      where run.id = any (line) and acting.execution_mode = 'suggest'
    ) then
      return 'the agent, or one that it acts for, may only suggest';
    end if;
    return null;`
)

interface Kind {
  readonly name: string
  readonly table: string
  readonly versions: string
  readonly id: string
  readonly entityType: string
  readonly columns: string
}

const object: Kind = {
  name: "object",
  table: "graph_objects",
  versions: "graph_object_versions",
  id: "object_id",
  entityType: "graphObject",
  columns: "properties, version, actor_type, actor_id, updated_at, deleted_at"
}

const relationship: Kind = {
  name: "relationship",
  table: "graph_relationships",
  versions: "graph_relationship_versions",
  id: "relationship_id",
  entityType: "relationship",
  columns: object.columns
}

const same = (left: string, right: string, columns: ReadonlyArray<string>): string =>
  columns.map((column) => `${left}.${column} is not distinct from ${right}.${column}`).join(" and ")

const actor = ["project_id", "actor_type", "actor_id"]
const cause = ["approved_by", "run_id", "tool_call_id", "task_id"]

/** A row of the graph has its version and its event, and they say the same of it. */
const entityWritten = ({ name, versions, id, entityType }: Kind): string =>
  wall(
    `${name}_written()`,
    "trigger",
    `refusal text;
    step text := case
      when tg_op = 'INSERT' then 'created'
      when old.deleted_at is null then case when new.deleted_at is null then 'updated' else 'deleted' end
      when new.deleted_at is null then 'created' end;
    by_run uuid;
    by_task uuid;
    approver text;`,
    `
    select event.run_id, event.task_id, event.approved_by into by_run, by_task, approver
    from ${versions} version join graph_events event on event.id = version.event_id
    where version.${id} = new.id and version.version = new.version and new.version = coalesce(old.version, 0) + 1
      -- Marks come with migration 20; a function's body is first read when it runs.
      and version.type = step and version.properties = new.properties and version.untrusted = new.untrusted and ${same("version", "new", actor)}
      and event.entity_type = '${entityType}' and event.entity_id = new.id and event.version = new.version
      and event.object_type = new.type and ${same("event", "version", ["type", ...actor, ...cause])};
    if not found then
      ${raise(`format('The ${name} %s was written without its version and its event: only the gateway writes the graph', new.id)`)}
    end if;
    if new.actor_type = 'agent' then
      refusal := refused_agents_write(new.actor_id, by_run, by_task, approver);
      if refusal is not null then
        ${raise(`format('The agent %s may not write the ${name} %s: %s', new.actor_id, new.id, refusal)`)}
      end if;
    end if;
    return null;`
  )

/** A relationship begins and ends at objects of its own project. */
const relationshipEnds = wall(
  "relationship_ends()",
  "trigger",
  "",
  `
    if not (exists (select from graph_objects one where one.id = new.from_id and one.project_id = new.project_id and one.deleted_at is null)
      and exists (select from graph_objects one where one.id = new.to_id and one.project_id = new.project_id and one.deleted_at is null)) then
      ${raise("format('The relationship %s does not lie between two objects of its project', new.id)")}
    end if;
    return null;`
)

/** A version or an event is of the present state of something; what was written with it is held by that. */
const isPresent = ({ table }: Kind, id: string): string =>
  `exists (select from ${table} one where one.id = ${id} and one.project_id = new.project_id and one.version = new.version)`

const versionWritten = (kind: Kind): string =>
  wall(
    `${kind.name}_version_written()`,
    "trigger",
    "",
    `
    if not ${isPresent(kind, `new.${kind.id}`)} then
      ${raise(`format('There is no ${kind.name} %s whose version %s this is', new.${kind.id}, new.version)`)}
    end if;
    return null;`
  )

const eventWritten = wall(
  "event_written()",
  "trigger",
  "",
  `
    if new.position is not null or new.dispatched_at is not null
      or not (new.entity_type = 'graphObject' and ${isPresent(object, "new.entity_id")}
        or new.entity_type = 'relationship' and ${isPresent(relationship, "new.entity_id")}) then
      ${raise("format('Nothing was written that the event %s tells of', new.id)")}
    end if;
    return null;`
)

/** Looks at each row that the server has written, when its statement is done. */
const watch = (name: string, table: string, when: string, called: string): string =>
  `create trigger ${name} after ${when} on kb.${table} for each row when (current_user = 'tropism_server') execute function kb.${called}()`

const triggers = [
  ...[object, relationship].flatMap(({ name, table, versions }) => [
    watch("wall", table, "insert or update", `${name}_written`),
    watch("wall", versions, "insert", `${name}_version_written`)
  ]),
  watch("wall_ends", "graph_relationships", "insert", "relationship_ends"),
  watch("wall", "graph_events", "insert", "event_written")
]

/** What never changes of a row is no column that the server may write. */
const rights = [
  ...[object, relationship].map(({ table, columns }) => [table, columns]),
  ["graph_events", "position, dispatched_at, refusals"]
].flatMap(([table, columns]) => [
  `revoke update on kb.${table} from tropism_server`,
  `grant update (${columns}) on kb.${table} to tropism_server`
])

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** What was denied before it reached the wall. */
const denials = [
  `create table kb.denials (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    at timestamptz not null default now(),
    door text not null check (door in ('run', 'chat', 'subAgent', 'approval')),
    agent_id uuid not null references kb.agents,
    run_id uuid not null references kb.agent_runs,
    user_id text,
    task_id uuid references kb.tasks,
    tool_call_id uuid,
    tool text not null,
    change jsonb,
    reason text not null,
    detail text not null
  )`,
  `create index denials_list on kb.denials (project_id, id)`,
  `create index denials_agent on kb.denials (agent_id, id)`,
  `create index denials_run on kb.denials (run_id, id)`,
  `alter table kb.denials enable row level security`,
  `create policy project on kb.denials using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`,
  `grant select, insert on kb.denials to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  agentsWrite,
  entityWritten(object),
  entityWritten(relationship),
  relationshipEnds,
  versionWritten(object),
  versionWritten(relationship),
  eventWritten,
  ...triggers,
  ...rights,
  ...denials
]

/**
 * People call tools for themselves: what they may not is on record like what agents may not,
 * and the calls of one user are found without reading those of others.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // A person's call is of no agent and in no run.
  `alter table kb.denials
    alter column agent_id drop not null,
    alter column run_id drop not null,
    drop constraint denials_door_check,
    add constraint denials_door_check check (door in ('run', 'chat', 'subAgent', 'approval', 'mcp')),
    add constraint denials_whose check (case door when 'mcp' then user_id is not null else agent_id is not null and run_id is not null end)`,
  `create index tool_calls_of_user on kb.tool_calls (project_id, user_id, id)`
]

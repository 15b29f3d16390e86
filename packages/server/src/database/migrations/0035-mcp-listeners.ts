/**
 * Which key secrets of subscribers are sealed with, and what sessions of MCP clients are told of.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  // One row at most: the key that every program on this database seals with. Its id tells nothing of it.
  `create table kb.sealing_keys (
    only_one boolean primary key default true check (only_one),
    key_id text not null,
    since timestamptz not null default now()
  )`,
  `create table kb.resource_subscriptions (
    project_id uuid not null references kb.projects,
    -- SHA-256 of the session's id, hexadecimal: the id itself opens the session.
    session text not null,
    uri text not null,
    user_id text not null,
    -- Where its source ended when it was subscribed to: what is behind that has changed since.
    place bigint not null,
    expires_at timestamptz not null,
    primary key (project_id, session, uri)
  )`,
  `create index resource_subscriptions_user on kb.resource_subscriptions (project_id, user_id, expires_at)`
]

/** The key to seal with, held until the transaction ends; the first program that seals says which it is. */
const hold = `
  insert into kb.sealing_keys (key_id) values (wanted) on conflict do nothing;
  select key_id from kb.sealing_keys for share`

/** Another key takes the place of one that the same program knows, or of one that nothing is sealed with. */
const adopt = `
  update kb.sealing_keys set key_id = wanted, since = now()
  where key_id <> wanted and (key_id = any(known) or not exists (
    select 1 from kb.event_subscriptions where secret like 'v1.%'));
  select key_id from kb.sealing_keys`

const unsealed = `
  select distinct project_id from kb.event_subscriptions
  where secret not like 'v1.' || wanted || '.%' or previous_secret not like 'v1.' || wanted || '.%'`

const functions = [
  ["hold_sealing_key(wanted text)", "text", hold],
  ["adopt_sealing_key(wanted text, known text[])", "text", adopt],
  ["projects_with_unsealed_secrets(wanted text)", "setof uuid", unsealed]
] as const

const rights = [
  // Nobody reads or writes the key's row but through the functions.
  `alter table kb.sealing_keys enable row level security`,
  `alter table kb.resource_subscriptions enable row level security`,
  `create policy project on kb.resource_subscriptions using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update, delete on kb.resource_subscriptions to tropism_server`,
  ...functions.flatMap(([head, answer, body]) => {
    const name = head.replace(/\w+ (text)/g, "$1")
    return [
      `create function kb.${head} returns ${answer} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
      `revoke all on function kb.${name} from public`,
      `grant execute on function kb.${name} to tropism_server`
    ]
  })
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights]

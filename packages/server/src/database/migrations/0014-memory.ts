/**
 * What was said in an agent's contexts can be found again by its words.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

/**
 * The words of what was said, without those that say nothing in English, and without endings. Of a long text the beginning,
 * because a vector of words has a largest size. `contexts/passages.ts` finds a question's words in the same way.
 */
const passageWords = `
  create function kb.passage_words(content text) returns tsvector language sql immutable parallel safe as $$
    select to_tsvector('pg_catalog.english', kb.search_words(left(content, 20000)))
  $$`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  passageWords,
  // The log is the truth: this only says where in it to look.
  `create table kb.passages (
    project_id uuid not null,
    agent_id uuid not null,
    context_name text not null,
    number integer not null,
    type text not null,
    created_at timestamptz not null,
    words tsvector not null,
    primary key (project_id, context_name, number),
    foreign key (project_id, context_name) references kb.contexts (project_id, name) on delete cascade
  )`,
  `insert into kb.passages
    select event.project_id, context.agent_id, event.context_name, event.number, event.type, event.created_at, kb.passage_words(event.payload ->> 'content')
    from kb.context_events event
    join kb.contexts context on context.project_id = event.project_id and context.name = event.context_name
    where event.type in ('UserMessageEvent', 'AssistantMessageEvent') and event.payload ->> 'content' <> ''`,
  // A short pending list: whoever writes past its end must not tidy megabytes.
  `create index passages_words on kb.passages using gin (words) with (gin_pending_list_limit = 256)`,
  // Of summaries, the newest stands for those before it.
  `create unique index passages_summaries on kb.passages (project_id, context_name, type)
    where type in ('ContextNotedEvent', 'ContextSummarizedEvent')`,
  `create index passages_newest on kb.passages (agent_id, created_at)`,
  `alter table kb.passages enable row level security`,
  `create policy project on kb.passages using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  // As for the objects of a project: under a policy no index would serve a search for words.
  `create view kb.project_passages as
    select agent_id, context_name, number, created_at, words from kb.passages where project_id = ${currentProject}`,
  `grant select, insert, update on kb.passages to tropism_server`,
  `grant select on kb.project_passages to tropism_server`
]

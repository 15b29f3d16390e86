/**
 * Runs are found by the words of what came of them.
 *
 * As with objects, a policy's barrier would keep the index from serving `@@`:
 * the owner's view names the project itself and has no such barrier.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const words = `to_tsvector('simple', kb.search_words(left(coalesce(summary, '') || ' ' || coalesce(error_message, ''), 20000)))`

const isTold = `summary is not null or error_message is not null`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index agent_runs_words on kb.agent_runs using gin (${words}) where ${isTold}`,
  `create view kb.project_runs as
    select id, project_id, status, agent_id, parent_run_id, backtest_id, trigger_type, created_at, context_name, ${words} as words
    from kb.agent_runs where project_id = (select ${currentProject}) and (${isTold})`,
  `grant select on kb.project_runs to tropism_server`
]

/**
 * The chain in which a person's wish is tried again, and for whom.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A run that a person asked for is the root of its chain, whatever chain its
 * event is of. Its later attempts go on in that chain: the event may lie deeper
 * than its own chain may go. What an agent's policy tries again is done for whom
 * the attempt before was made; what a person tries again is theirs.
 */
import type { SqlClient, Statement } from "effect/sql"

/** The newest run, up to the attempt of this entry, that a person asked for; no row where nobody did. */
export const askedRun = (sql: SqlClient.SqlClient, entryId: Statement.Fragment) => sql`
  select asked.id from kb.agent_processing_log tried
  join kb.agent_processing_log before on before.agent_id = tried.agent_id and before.graph_object_id = tried.graph_object_id
    and before.object_version = tried.object_version and before.event_type = tried.event_type and before.attempt <= tried.attempt
  join kb.agent_runs asked on asked.id = before.run_id and asked.root_event_id = asked.id
  where tried.id = ${entryId} order by before.attempt desc limit 1`

/**
 * The run behind which the policy of its agent opened an entry; no row where a person did.
 *
 * **Details** A policy opens the next attempt in the transaction that ends the one before, and what is of one transaction is of one instant.
 * There is one such run at most; the limit keeps PostgreSQL from joining whole tables where it is asked for many entries.
 */
export const failedRun = (sql: SqlClient.SqlClient, entryId: Statement.Fragment) => sql`
  select run.user_id from kb.agent_processing_log opened
  join kb.agent_processing_log before on before.agent_id = opened.agent_id and before.graph_object_id = opened.graph_object_id
    and before.object_version = opened.object_version and before.event_type = opened.event_type and before.attempt = opened.attempt - 1
    and before.completed_at = opened.created_at
  join kb.agent_runs run on run.id = before.run_id
  where opened.id = ${entryId} limit 1`

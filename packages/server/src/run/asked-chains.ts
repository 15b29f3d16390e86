/**
 * The chain in which a person's wish is tried again.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A run that a person asked for is the root of its chain, whatever chain its
 * event is of. Its later attempts go on in that chain: the event may lie deeper
 * than its own chain may go.
 */
import type { SqlClient, Statement } from "effect/sql"

/** The newest run, up to the attempt of this entry, that a person asked for; no row where nobody did. */
export const askedRun = (sql: SqlClient.SqlClient, entryId: Statement.Fragment) => sql`
  select asked.id from kb.agent_processing_log tried
  join kb.agent_processing_log before on before.agent_id = tried.agent_id and before.graph_object_id = tried.graph_object_id
    and before.object_version = tried.object_version and before.event_type = tried.event_type and before.attempt <= tried.attempt
  join kb.agent_runs asked on asked.id = before.run_id and asked.root_event_id = asked.id
  where tried.id = ${entryId} order by before.attempt desc limit 1`

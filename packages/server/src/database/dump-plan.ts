/**
 * Which tables a dump has, in the order in which they can be written again, and which it leaves out.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * What a row refers to comes before it, but for rows of its own table, which a
 * restore waits for. A table that is new stands in one of the two lists, or a
 * test fails.
 */
export interface DumpPart {
  readonly table: string
  /** What its rows are put in order by. */
  readonly order: string
  /** Columns that stay behind: what belongs to one database, and secrets. */
  readonly without?: ReadonlyArray<string>
}

const part = (table: string, order = "id", without: ReadonlyArray<string> = []): DumpPart => ({
  table,
  order,
  without
})

export const dumpParts: ReadonlyArray<DumpPart> = [
  part("members", "user_id"),
  part("feeds", "project_id"),
  part("task_counters", "project_id"),
  part("todo_counters", "owner"),
  part("kill_switches", "project_id"),
  part("graph_objects"),
  part("graph_object_versions", "object_id, version"),
  part("graph_relationships"),
  part("graph_relationship_versions", "relationship_id, version"),
  // Written in this order, they get numbers of the same order.
  part("graph_events", "seq"),
  part("graph_purges"),
  part("imports"),
  part("imported_objects", "source_id"),
  part("agents"),
  part("agent_versions", "agent_id, version"),
  part("agent_handled_versions", "agent_id, graph_object_id"),
  part("mcp_servers"),
  part("mcp_event_sources", "id", ["claim_token", "claimed_until"]),
  part("mcp_occurrences", "source_id, number"),
  part("attachments", "digest"),
  part("attachment_readers", "digest, reader"),
  // A fork is younger than what it was forked from, as nearly as clocks tell; where it is not, it waits for it (migration 67).
  part("contexts", "created_at, forked_from is not null, name"),
  part("brought_contexts", "context_name"),
  part("context_events", "context_name, number"),
  part("responses"),
  part("passages", "context_name, number"),
  part("backtests"),
  // A run's id may be smaller than that of the run that spawned it: each has the time of its server.
  part("agent_runs", "spawn_depth, id", [
    "attempt_token",
    "worker_id",
    "lease_expires_at",
    "progressed_at",
    "progress_of",
    "waits_for",
    "waits_since",
    "waits_until",
    "wait_tries",
    "wait_message",
    "deaths",
    "deaths_step",
    "shares_blame"
  ]),
  part("tool_lists", "digest"),
  part("model_calls", "run_id, number"),
  part("review_records", "agent_id, agent_version, operation, object_type"),
  part("promotions"),
  part("tool_calls"),
  part("tasks"),
  part("task_revisions", "task_id, revision"),
  part("undo_items", "task_id, revision, place"),
  part("rejections", "agent_id, object_id, rejected_at, task_id"),
  part("denials"),
  part("declined_inputs", "run_id, user_id, key"),
  part("backtest_events", "backtest_id, number"),
  part("backtest_suggestions", "tool_call_id"),
  part("agent_processing_log"),
  part("conversations"),
  part("webhooks", "id", ["token_hash", "previous_token_hash", "previous_valid_until"]),
  part("webhook_deliveries", "webhook_id, delivery_id"),
  part("budgets", "scope, scope_id, period")
]

/** What is not in a dump, and why. */
export const leftOut: Readonly<Record<string, string>> = {
  projects: "the first line has it",
  agent_reactions: "made when an agent is enabled",
  agent_schedules: "made when an agent is enabled",
  agent_mcp_events: "made when an agent is enabled",
  context_snapshots: "made of the log when it is read",
  api_tokens: "secrets; a copy has tokens of its own",
  login_codes: "secrets",
  sealing_keys: "of the database",
  idempotency_keys: "of requests to the server that was asked",
  server_request_keys: "of requests to the server that was asked",
  mcp_grants: "secrets; somebody signs in again",
  mcp_sign_ins: "secrets",
  mcp_clients: "secrets; a client is registered with the next sign-in",
  event_subscriptions: "of clients of the server, with their secrets and their tokens",
  resource_subscriptions: "of sessions with the server",
  provider_outages: "of the servers of the database",
  restores: "of the database",
  restored_ids: "empty but while a restore is under way"
}

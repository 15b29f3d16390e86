/**
 * What runs in the database with the owner's rights, above every policy, and why each may.
 *
 * The database's own list is held against this one (`stories/project-walls.test.ts`):
 * a function or a view that is new is refused there until its reason stands here.
 */

/** Views run with the owner's rights; each names the project itself. */
export const views: Readonly<Record<string, string>> = {
  project_objects:
    "this project's objects, with a condition that the full-text index can serve (decision 11)",
  project_passages: "this project's passages, for the same reason",
  project_runs: "what came of this project's runs, for the same reason",
  provider_outages_here: "since when the providers are away that this project's runs wait for",
  tokens_here:
    "the tokens of this project, or with none set those of the server; hashes are not among its columns"
}

const whereWorkIs = "answers ids of projects that have work of one kind, and nothing of it"
const oneHash = "answers what belongs to the one secret whose hash it is given"

/** Functions that run with the owner's rights, and why each may look across projects. */
export const definers: Readonly<Record<string, string>> = {
  adopt_sealing_key: "the sealing key is one for the database; its id tells nothing of any project",
  hold_sealing_key: "as adopt_sealing_key",
  projects_with_unsealed_secrets: whereWorkIs,
  projects_with_resting_sessions: whereWorkIs,
  projects_with_overdue_calls: whereWorkIs,
  find_principal: oneHash,
  see_token: oneHash,
  open_session: oneHash,
  end_session: oneHash,
  exchange_login_code: oneHash,
  find_login_code: oneHash,
  name_browser: oneHash,
  list_sessions:
    "answers the sessions of one user that reach no further than the secret whose hash it is given",
  end_sessions: "ends what list_sessions answers, and answers how many",
  find_webhook: "a delivery names its webhook and no project; answers its project and two hashes",
  known_outages: "circuit breakers of providers: names of models and counts, and nothing of any run",
  note_outage: "as known_outages; a breaker belongs to the server's provider and to no project",
  admit_to_route: "as note_outage; answers whether the run that asks is the one that may ask its provider",
  close_outage: "as note_outage",
  routes_to_wake: "answers names of models that runs may ask again, and nothing of the runs",
  wake_waiting_runs: "lets runs of every project go on that waited for a provider, and answers how many",
  outage_gauges: "as gauges",
  admit_person: "a JWT is of a person and of no project; it writes one hash and answers nothing",
  hold_admin_token:
    "the server's admin is of no project; it writes one hash, ends what no server was started with, and answers how many",
  save_login_code: "the server's admin is of no project; it writes one hash and answers nothing",
  find_memberships: "which projects one user belongs to, to say what a token may reach",
  find_server_request: "requests that are of no project; answers what one caller's token got for one key",
  keep_server_request: "as find_server_request; the table of these requests is closed",
  list_projects: "the names of the projects whose ids it is given; all of them for the server's admin alone",
  save_member_code: "writes for a member of this project; the table of codes is closed",
  make_token: "writes for this project, or with none set for the server; the table of tokens is closed",
  end_member_codes: "as end_tokens, for links of one member that nobody used",
  end_tokens: "ends tokens of this project, or with none set the server's",
  begin_restore: "makes the project of this transaction and writes no other's rows (decision 60)",
  is_any_restored_id_taken:
    "answers whether ids that a restore brings are taken, to whoever made the project",
  restore_rows:
    "writes rows of the project that this transaction has made, past the gateway, and of no other",
  check_restored_references: "looks whether a restored row refers to another project, and answers nothing",
  purge_object: "of this project alone; the server's role may delete no row of the graph otherwise",
  purge_relationship: "as purge_object",
  forget_brought_contexts: "as forget_tokens",
  forget_tokens: "removes what ended long ago, of all projects at once, and answers how many",
  forget_entries: "as forget_tokens",
  forget_idempotency_keys: "as forget_tokens",
  forget_occurrences: "as forget_tokens",
  follow_kill_switches: "stops and resumes runs of every project that a switch holds, and answers their ids",
  absent_workers: "answers names of programs whose server is gone, and nothing of their runs",
  lapse_workers: "as lapse_leases, for programs that are named; answers how many",
  lapse_leases: "lets every run of a program that died be taken over, and answers nothing",
  let_go_parked: "lets runs go that wait for nobody any more, and answers how many",
  count_grown_tables: "lets PostgreSQL count rows for its own plans, and answers nothing",
  bounded_gauges: "as gauges",
  paused_runs: "as gauges",
  standing_gauges: "as gauges",
  owners_connections: "as gauges: how many connections the owner's login has, and nothing of what they do",
  gauges: "answers counts over all projects, for whoever watches the server",
  projects_with_backtests: whereWorkIs,
  projects_with_due_deliveries: whereWorkIs,
  projects_with_due_schedules: whereWorkIs,
  projects_with_due_sources: whereWorkIs,
  projects_with_due_waits: whereWorkIs,
  projects_with_events: whereWorkIs,
  projects_with_expired_tasks: whereWorkIs,
  projects_with_lapsed_runs: whereWorkIs,
  projects_with_suspects: whereWorkIs,
  projects_with_queued_runs: whereWorkIs,
  projects_with_silent_runs: whereWorkIs,
  projects_with_stuck_entries: whereWorkIs,
  projects_with_unwanted_rests: whereWorkIs,
  projects_with_waiting_entries: "as the others, with the time at which the first is due"
}

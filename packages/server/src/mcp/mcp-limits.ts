/**
 * Every bound of the MCP door, with its unit in its name; its bodies have the bound of all requests.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
export const mcpLimits = {
  /** How long a client may believe a list of tools or prompts; one that reads the graph it may not believe at all. */
  listTtlMs: 60_000,
  /** Of a name that does not exist, as it is told back. */
  toldNameMaxChars: 200,
  /** Of one completion, as the protocol says. */
  completionValues: 100,
  /** Objects in one page of resources, events of a log or tasks of the inbox in one resource. */
  resourceItems: 50,
  /** Changes and runs that a prompt tells of. */
  promptItems: 50,
  /** Tasks that a prompt shows with all that they say. */
  promptTasks: 20,
  /** Addresses of projects that a token which spans several is told. */
  toldProjects: 20,
  /** Sessions of the revision 2025-11-25 that this server has servers for; an older one is made anew when it is used again. */
  sessions: 1_000,
  /** A session that nobody uses has no server after this long. */
  sessionIdleMs: 600_000,
  sessionSweepIntervalMs: 60_000,
  /** Sessions that clients have ended, and that are refused from then on. */
  endedSessions: 10_000,
  /** Open streams of one kind that this server holds. */
  streams: 1_024,
  /** How long calls under way may take to end when the server stops. */
  drainTimeoutMs: 5_000
} as const

/**
 * Every bound of the MCP door, with its unit in its name; its bodies have the bound of all requests.
 *
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
  /** Sessions of the revision 2025-11-25 that this server has servers for, beside those with a call under way; an older one is made anew when it is used again. */
  sessions: 1_000,
  /** A session that nobody uses has no server after this long. */
  sessionIdleMs: 600_000,
  /** Nor has one of which an answer is under way for so long: longer than a task's end is waited for. */
  sessionBusyMs: 7_200_000,
  sessionSweepIntervalMs: 60_000,
  /** Sessions that clients have ended, and that are refused from then on. */
  endedSessions: 10_000,
  /** Open streams of one kind that this server holds. */
  streams: 1_024,
  /** Streams of one user in one project on which changes are told. */
  listensPerUser: 20,
  /** Parts of the door that tell on one stream at once. */
  tellersOfStream: 16,
  /** A stream on which changes are told ends when it has told so much: what a client has taken nobody knows. */
  listenMaxChars: 8_388_608,
  /** Resources for which one stream listens. */
  listenedResources: 100,
  /** Resources that the sessions of one user in one project are subscribed to; each is kept for so long after somebody has listened. */
  subscriptionsPerUser: 500,
  subscriptionKeptMs: 86_400_000,
  uriMaxChars: 2_000,
  /** What changes within so long is told together. */
  resourceUpdateDelayMs: 100,
  /** Between two looks for changes of which no wake-up told, and places of the feed that one look goes through. */
  resourceSweepMs: 4_000,
  resourceLookPlaces: 2_000,
  /** How long calls under way may take to end when the server stops. */
  drainTimeoutMs: 5_000
} as const

/** Limits of the MCP endpoint; each unit is in its name. Bodies have the limit of all requests. */

export const mcpLimits = {
  /** Cache lifetime of lists of tools and prompts; lists that read the graph are not cacheable. */
  listTtlMs: 60_000,
  /** An unknown name, as an error message quotes it. */
  toldNameMaxChars: 200,
  /** Values of one completion, as the protocol limits them. */
  completionValues: 100,
  /** Objects in a page of resources, events in a log resource, tasks in the inbox resource. */
  resourceItems: 50,
  /** Changes and runs in a prompt. */
  promptItems: 50,
  /** Tasks that a prompt shows in full. */
  promptTasks: 20,
  /** Project addresses listed for a token that reaches several. */
  toldProjects: 20,
  /** Sessions of 2025-11-25 with a server here, besides those with a running call; an older one is recreated on its next use. */
  sessions: 1_000,
  /** An idle session loses its server after this time. */
  sessionIdleMs: 600_000,
  /** So does one whose call runs this long: longer than the wait for a task. */
  sessionBusyMs: 7_200_000,
  sessionSweepIntervalMs: 60_000,
  /** Sessions ended by clients, which are refused from then on. */
  endedSessions: 10_000,
  /** Open streams of one kind on this server. */
  streams: 1_024,
  /** Change streams of one user in one project. */
  listensPerUser: 20,
  /** Modules that send on one stream at once. */
  tellersOfStream: 16,
  /** A change stream ends after this amount: what a client has received is unknown. */
  listenMaxChars: 8_388_608,
  /** Resources that one stream listens to. */
  listenedResources: 100,
  /** Resource subscriptions of one user's sessions in one project, and how long each is kept after its session last listened. */
  subscriptionsPerUser: 500,
  subscriptionKeptMs: 86_400_000,
  uriMaxChars: 2_000,
  /** Changes within this time are sent together. */
  resourceUpdateDelayMs: 100,
  /** Between two sweeps for changes whose notification was lost, and feed positions per sweep. */
  resourceSweepMs: 4_000,
  resourceLookPlaces: 2_000,
  /** Time for running calls to finish when the server stops. */
  drainTimeoutMs: 5_000
} as const

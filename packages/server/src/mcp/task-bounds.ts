/**
 * Every bound of runs as MCP tasks, with its unit in its name.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
export const taskBounds = {
  /** What a client waits between two looks at a run that is at work, and at one that waits for a person. */
  pollIntervalMs: 1_000,
  restPollIntervalMs: 5_000,
  messageMaxChars: 1_000,
  /** Of one question to a person. */
  questionMaxChars: 8_000,
  /** Suggestions of one run that are put before a person at once; the next follow when these are decided. */
  suggestionsAtOnce: 20,
  /** Answers of one request. */
  answers: 40,
  /** Tasks in one page of a list. */
  listedTasks: 50,
  /** Tasks of which one stream tells. */
  watchedTasks: 50,
  /** Tasks that are watched are looked at again for rows that no wake-up told of. */
  sweepIntervalMs: 4_000,
  /** Clients of 2025-11-25 that wait for the end of a task: of one user in a project, and of all on this server. */
  waitsOfUser: 20,
  waits: 1_024,
  /** How long one of them waits before it is told to ask again. */
  waitMaxMs: 3_600_000
} as const

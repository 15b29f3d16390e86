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
  answers: 40
} as const

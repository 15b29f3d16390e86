/**
 * Every bound of live streams, with its unit in its name.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
export const streamLimits = {
  /** Bun closes a connection that is quiet for 10 seconds. As often a buffer of what may be purged forgets what it had at the last one. */
  heartbeatIntervalMs: 4_000,
  /** A log that is watched is read again for rows that no wake-up told of. */
  pollIntervalMs: 1_000,
  pageEvents: 200,
  /** The first page of one who catches up; each further page is twice as large. */
  firstPageEvents: 20,
  /** Subscribers that read from their logs at once, to catch up. */
  catchUps: 4,
  /** Of one log's newest events, kept for all who watch it: who is further behind reads from the log. */
  bufferEvents: 256,
  bufferBytes: 1_048_576,
  /** Handed to one connection at a time, and one event more. */
  chunkBytes: 262_144,
  /** A connection that takes nothing of what it was handed for so long is cut off. */
  stallMs: 30_000,
  /** Between two looks whether those who watch may do so still. */
  permitIntervalMs: 30_000,
  /** What a client waits before it connects again. */
  retryMs: 1_000
} as const

/**
 * The bounds of servers that work together; the unit is in the name.
 *
 * Whose server is not heard for `silenceMs`, at two looks, has nobody who works:
 * after at most `silenceMs` and two looks its runs are free: fail-over is done within 6 s.
 */

export const clusterLimits = {
  /** Places that contexts and singletons are spread over; the same on all servers of a cluster. */
  shards: 64,
  /** Between two signs of life of a server. */
  heartbeatMs: 1_000,
  /** A server that gave no sign of life for so long holds nothing any more. */
  silenceMs: 3_000,
  /** Between two looks at who is there, and at who is not. */
  lookMs: 500,
  /** After so many looks at which the others did not reach this server it says so. */
  unreachedLooks: 20,
  /** After the database was away, and at a start, nobody is missed for so long: all of them come back first. */
  graceMs: 4_000,
  /** How long a server that leaves waits for what is under way between servers. */
  partingMs: 2_000,
  /** How long a server waits for another one to say which key it has. */
  askKeyMs: 2_000,
  /** Of so many a server asks that at the same time. */
  askKeysTogether: 16,
  /** Of so many servers that do not prove themselves a server warns in its life. */
  strangersTold: 16,
  /** Connections to the database for signs of life, beside the pool. */
  connections: 2,
  /** Words of an answer go to other servers together, so long after one another. */
  passIntervalMs: 40,
  /** How long one sending of words may take before they are given up. */
  passTimeoutMs: 1_000,
  /** Where nobody watched, no words are sent for so long. */
  unwatchedMs: 500,
  /** Requests that one context's place works on at once: one for each server that watches, and those that bring words. */
  requestsAtContext: 1_000,
  /** For so long a place may be on its way to another server, and whoever watches on the way there: its words are kept. */
  movingMs: 8_000,
  /** Pieces of an answer that wait for one server's watcher, or for a place that moves; the oldest are forgotten first. */
  waitingPieces: 1_000,
  /** Between two tries to watch at another server. */
  retryMs: 500,
  /** Without other settings a server on loopback is reached by others at its port and so much more. */
  portDistance: 100
} as const

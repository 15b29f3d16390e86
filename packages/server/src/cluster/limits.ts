/**
 * Limits of servers that work together; each unit is in its name.
 *
 * A server without a heartbeat for `silenceMs`, at two checks, is gone: its runs are free after at most `silenceMs` and two checks, so
 * fail-over takes less than 6 s.
 */

export const clusterLimits = {
  /** Shards of contexts and singletons; the same on all servers of a cluster. */
  shards: 64,
  /** Between two heartbeats of a server. */
  heartbeatMs: 1_000,
  /** A server without a heartbeat for this long holds nothing any more. */
  silenceMs: 3_000,
  /** Between two checks of which servers are present or gone. */
  lookMs: 500,
  /** After this many checks without being reached by peers a server warns. */
  unreachedLooks: 20,
  /** After a database outage and at a start, no server counts as gone for this long: all of them reconnect first. */
  graceMs: 4_000,
  /** How long a leaving server waits for requests between servers. */
  partingMs: 2_000,
  /** How long a server waits for a peer's answer about its key. */
  askKeyMs: 2_000,
  /** Peers that are asked about their key at once. */
  askKeysTogether: 16,
  /** Warnings about unauthenticated peers in a server's life. */
  strangersTold: 16,
  /** Connections to the database for heartbeats, beside the pool. */
  connections: 2,
  /** Between two sends of an answer's deltas to other servers. */
  passIntervalMs: 40,
  /** Timeout of one send of deltas. */
  passTimeoutMs: 1_000,
  /** Without watchers, sends pause for this long. */
  unwatchedMs: 500,
  /** Concurrent requests at one context's relay: one per watching server, and the sends. */
  requestsAtContext: 1_000,
  /** How long a place may take to move to another server, and its watchers to follow: its deltas are kept meanwhile. */
  movingMs: 8_000,
  /** Deltas waiting for one server's watcher, or for a place that moves; the oldest are dropped first. */
  waitingPieces: 1_000,
  /** Between two attempts to watch at another server. */
  retryMs: 500,
  /** By default peers reach a server on loopback at its port plus this number. */
  portDistance: 100
} as const

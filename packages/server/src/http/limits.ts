/** Limits of request handling; each unit is in its name. */

export const edgeLimits = {
  /** One segment of a path. Nothing with its own address may have a longer name. */
  addressPartChars: 1_000,
  /** Sustained, per token; `TROPISM_RATE_LIMIT` overrides it. */
  tokenRequestsPerSecond: 1_000,
  /** The burst of an idle token, as the time that accumulates it. */
  tokenWindowSeconds: 2,
  /** Sustained, per address, for requests without a known token. */
  addressRequestsPerSecond: 100,
  addressWindowSeconds: 10,
  /** The cost of a refused credential, in requests of its address: it slows guessing down. */
  refusedCredentialRequests: 10,
  /** Tokens and addresses with a counter; the least recently used is dropped and starts again. */
  countedCallers: 10_000,
  /** A readiness probe within this time means that the server is monitored. */
  watchedMs: 30_000,
  /** A monitored server stays open this long after it reports that it stops. */
  leaveNoticeMs: 3_000,
  /** The notice to waiting callers comes this long before their requests are cut off. */
  lastWordMs: 1_000
} as const

// Limits of live streams; each unit is in its name.

export const streamLimits = {
  /** Bun closes a connection that is quiet for 10 seconds. A buffer of purgeable events also forgets older events at this interval. */
  heartbeatIntervalMs: 4_000,
  /** How often a watched log is read again, in case a notification was lost. */
  pollIntervalMs: 1_000,
  pageEvents: 200,
  /** The first catch-up page; each further page is twice as large. */
  firstPageEvents: 20,
  /** Concurrent reads of subscribers that catch up. */
  catchUps: 4,
  /** The newest events of one log, shared by all subscribers; a subscriber further back reads from the log. */
  bufferEvents: 256,
  bufferBytes: 1_048_576,
  /** Written to one connection at a time, plus at most one event. */
  chunkBytes: 262_144,
  /** A connection that reads nothing for this long is closed. */
  stallMs: 30_000,
  /** Between two authorization checks of subscribers. */
  permitIntervalMs: 30_000,
  /** The reconnect delay of a client. */
  retryMs: 1_000
} as const

// Limits of credentials; each unit is in its name.

export const tokenLimits = {
  /** A shorter token set by an operator can be guessed; the server warns at its start. */
  givenMinChars: 16,
  /** Between two heartbeats of a server for its admin token. */
  holdIntervalMs: 60_000,
  /** The admin token is valid for this long after its last heartbeat. */
  unheldKeepSeconds: 300,
  sessionMaxAgeSeconds: 2_592_000,
  /** Stored characters of a browser's name, which tells a person's sessions apart. */
  browserNameMaxChars: 200,
  loginCodeMaxAgeSeconds: 86_400,
  /** Validity of a sign-in link of a member. */
  memberCodeMaxAgeSeconds: 86_400,
  /** Retention of ended tokens and sessions. */
  endedTokensKeepMs: 2_592_000_000,
  /** Tokens deleted in one transaction, and the transactions of one sweep. */
  forgetBatchTokens: 1_000,
  forgetMaxBatches: 1_000,
  /** Between two sweeps for ended tokens. */
  forgetTokensIntervalMs: 3_600_000,
  /** A provider that lists a person's groups in a JWT makes it long. */
  jwtMaxBytes: 8_192,
  /** Tolerated clock skew of a provider. */
  jwtSkewSeconds: 30,
  jwtSecretMinBytes: 32,
  jwtRsaKeyMinBits: 2_048,
  jwksMaxBytes: 262_144,
  jwksTimeoutMs: 5_000,
  /** Keys are fetched again at this age, and kept while the provider is away. */
  jwksMaxAgeMs: 600_000,
  /** Between two fetches from a provider, whichever unknown key ids arrive. */
  jwksPauseMs: 30_000
} as const

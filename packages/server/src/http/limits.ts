/**
 * The bounds of what every request meets first, each with its unit in its name.
 */

export const edgeLimits = {
  /** One part of an address; a longer one leads nowhere, so nothing that has an address of its own may have a longer name. */
  addressPartChars: 1_000,
  /** Of one token, sustained; `TROPISM_RATE_LIMIT` says otherwise. */
  tokenRequestsPerSecond: 1_000,
  /** Requests of a token that was quiet may come at once, as many as come in so long. */
  tokenWindowSeconds: 2,
  /** Of one address, sustained, while it shows no token that is known to be good. */
  addressRequestsPerSecond: 100,
  addressWindowSeconds: 10,
  /** What a refused credential costs its address, in requests: guessing is slow. */
  refusedCredentialRequests: 10,
  /** Tokens, and addresses, whose requests are counted; who asked least recently is counted from the beginning. */
  countedCallers: 10_000,
  /** Somebody watches over this server when it was asked so lately whether it is ready. */
  watchedMs: 30_000,
  /** A server that is watched keeps its doors open for so long after it has said that it stops. */
  leaveNoticeMs: 3_000,
  /** So long before requests under way are cut off, who waits for an answer is told that it is not made here. */
  lastWordMs: 1_000
} as const

// Every bound of live streams, with its unit in its name.
//

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

// The bounds of what lets somebody in, each with its unit in its name.

export const tokenLimits = {
  /** A token that an operator chose and that is shorter can be guessed, and the server says so at its start. */
  givenMinChars: 16,
  /** Between two times at which a server says that it has its token. */
  holdIntervalMs: 60_000,
  /** The admin's token lets in for so long behind the last time that a server said that it has it. */
  unheldKeepSeconds: 300,
  sessionMaxAgeSeconds: 2_592_000,
  /** What a browser calls itself is kept so far, to tell a person's sessions apart. */
  browserNameMaxChars: 200,
  loginCodeMaxAgeSeconds: 86_400,
  /** Of a link that signs in a member. */
  memberCodeMaxAgeSeconds: 86_400,
  /** A token or session that has ended is kept for this long. */
  endedTokensKeepMs: 2_592_000_000,
  /** Tokens removed in one transaction, and transactions in one look. */
  forgetBatchTokens: 1_000,
  forgetMaxBatches: 1_000,
  /** Between two looks for tokens that ended long ago. */
  forgetTokensIntervalMs: 3_600_000,
  /** A JWT may be so long: a provider that names a person's groups in it fills some of that. */
  jwtMaxBytes: 8_192,
  /** So far a provider's clock may be ahead of ours. */
  jwtSkewSeconds: 30,
  jwtSecretMinBytes: 32,
  jwtRsaKeyMinBits: 2_048,
  jwksMaxBytes: 262_144,
  jwksTimeoutMs: 5_000,
  /** Keys are asked for anew when they are this old, and kept while nobody answers. */
  jwksMaxAgeMs: 600_000,
  /** Between two questions to a provider, whoever shows which unknown key. */
  jwksPauseMs: 30_000
} as const

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

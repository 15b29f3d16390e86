/**
 * Limits of foreign MCP servers, which may be slow, large, silent or hostile.
 */

export const externalLimits = {
  /** From the program's start, or the first request, to the end of the handshake. */
  connectTimeoutMs: 30_000,
  /** Wait for the server's protocol revision, before the older handshake is tried. */
  probeTimeoutMs: 5_000,
  /** One page of a list; a list that has taken longer requests no further page. */
  listTimeoutMs: 30_000,
  /** Ping after a call without an answer; a server that fails it is reconnected. */
  pingTimeoutMs: 2_000,
  /** One poll for events. */
  pollTimeoutMs: 30_000,
  /** One message, or one answer over HTTP. */
  messageMaxBytes: 4_194_304,
  /** One answer of an authorization server, and its timeout. */
  oauthMaxBytes: 262_144,
  oauthTimeoutMs: 15_000,
  oauthTokenMaxChars: 16_384,
  /** Lifetime of a sign-in link. */
  signInMs: 600_000,
  /** An access token is renewed this long before it expires. */
  renewAheadMs: 30_000,
  /** Lease of a token renewal, longer than one takes; other programs poll for its result. */
  renewClaimMs: 30_000,
  renewPollMs: 250,
  renewLooks: 200,
  /** Tokens of one connection that are removed from messages. */
  scrubbedTokens: 10,
  /** Rows resealed in one transaction. */
  sealedTogether: 100,
  /** Redirects of one request within its origin. */
  redirects: 3,
  /** Delay before a stream reopens; doubles while nothing arrives. */
  reopenMinMs: 500,
  reopenMaxMs: 30_000,
  /** An idle connection is closed after this. */
  idleMs: 300_000,
  connections: 200,
  /** Delay after a failed connection; doubles each time. */
  backOffBaseMs: 500,
  backOffMaxMs: 60_000,
  /** An older list is refreshed before the next call. */
  relistMs: 60_000,
  /** Time for a program to exit after its input is closed, and again after SIGTERM. */
  endGraceMs: 2_000,
  /** Wait for the last output of an exited program. */
  lastWordsMs: 500,
  /** Name of an unusable tool in a message. */
  leftOutNameMaxChars: 200,
  /** Its reason in a message, and the room reserved for the count of further ones. */
  leftOutReasonMaxChars: 240,
  leftOutRestChars: 30,
  /** Grace period of a call whose run was interrupted; then its outcome is unknown. */
  partingMs: 10_000,
  /** A program's error stream: characters per log line, and lines per minute. */
  logLineMaxChars: 500,
  logLinesPerMinute: 60,
  serversPerProject: 50,
  /** One server's list: tools; pages, one per tool and an empty one; what is read before no further page is requested. */
  tools: 500,
  toolPages: 501,
  listMaxChars: 67_108_864,
  descriptionMaxChars: 8_000,
  schemaMaxChars: 50_000,
  /** Parts of a schema with inlined references for a model; what is beyond is only named. */
  schemaParts: 2_000,
  /** Visited parts of a validating schema at one place of a value, references included. */
  schemaVisits: 2_000,
  /** One validation, in the steps of `json-schemas.ts`: a visited part costs ten and more. */
  judgingSteps: 1_000_000,
  /** The trial validation that checks whether a schema is usable. */
  tryingSteps: 50_000,
  /** Minimum poll interval of a task; the server may ask for a longer one. */
  taskPollMinMs: 250,
  taskPollMaxMs: 10_000,
  /** Input requests quoted of one call, and the characters of each. */
  wantedTold: 5,
  wantedMaxChars: 200,
  /** Reported faults of arguments; for arguments longer than this, only the first. */
  argumentFaults: 10,
  thoroughMaxChars: 10_000,
  /** Repairs of nearly fitting arguments: number, depth, and references resolved for one schema. */
  argumentChanges: 50,
  coercedDepth: 12,
  coercedRefs: 10,
  /** One outcome, as the model reads it. */
  resultMaxChars: 100_000,
  /** Pictures of one result shown to a model, and bytes of each; all providers accept that many. */
  pictures: 8,
  pictureMaxBytes: 3_000_000,
  /** A forwarded error. */
  faultMaxChars: 600
} as const

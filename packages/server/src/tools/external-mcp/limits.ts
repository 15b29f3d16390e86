/**
 * Every bound of foreign MCP servers, which may be slow, large, silent or hostile.
 *
 */

export const externalLimits = {
  /** From the start of a program, or the first request, to the end of the handshake. */
  connectTimeoutMs: 30_000,
  /** How long a server may take to say which revision of the protocol it speaks, before the older handshake is tried. */
  probeTimeoutMs: 5_000,
  /** One page of a list; a list that has taken longer is asked for no further page. */
  listTimeoutMs: 30_000,
  /** After a call without an answer: a server that does not answer this either is connected to anew. */
  pingTimeoutMs: 2_000,
  /** One question for events. */
  pollTimeoutMs: 30_000,
  /** One message, or one answer over HTTP. */
  messageMaxBytes: 4_194_304,
  /** One answer of an authorization server, and how long it may take. */
  oauthMaxBytes: 262_144,
  oauthTimeoutMs: 15_000,
  oauthTokenMaxChars: 16_384,
  /** How long a link to sign in can be used. */
  signInMs: 600_000,
  /** An access token is renewed this long before it ends. */
  renewAheadMs: 30_000,
  /** Who renews a token has it for this long, which is longer than that takes; others look whether it is done. */
  renewClaimMs: 30_000,
  renewPollMs: 250,
  renewLooks: 200,
  /** Tokens of one connection that are taken out of what is told. */
  scrubbedTokens: 10,
  /** Rows whose secrets are sealed anew in one transaction. */
  sealedTogether: 100,
  /** How often one request is sent on to another address of the same origin. */
  redirects: 3,
  /** A stream that ended is opened again after this long, twice as long each time that nothing came of it. */
  reopenMinMs: 500,
  reopenMaxMs: 30_000,
  /** A connection that nobody uses is closed after this long. */
  idleMs: 300_000,
  connections: 200,
  /** After a failed connection the next try waits, twice as long each time. */
  backOffBaseMs: 500,
  backOffMaxMs: 60_000,
  /** A connection older than this lists its tools again before the next call. */
  relistMs: 60_000,
  /** A program may take this long to end after its input has, and again after SIGTERM. */
  endGraceMs: 2_000,
  /** How long the last words of a program that has ended are waited for. */
  lastWordsMs: 500,
  /** How much of a tool's name is told that cannot be offered. */
  leftOutNameMaxChars: 200,
  /** A call whose run goes away is waited for this long, then its outcome is unknown. */
  partingMs: 10_000,
  /** Of what a program writes to its error stream: a line of the log, and lines in a minute. */
  logLineMaxChars: 500,
  logLinesPerMinute: 60,
  serversPerProject: 50,
  /** Of one server's list; its pages, one for each tool and an empty one; what is read of it before no further page is asked for. */
  tools: 500,
  toolPages: 501,
  listMaxChars: 67_108_864,
  descriptionMaxChars: 8_000,
  schemaMaxChars: 50_000,
  /** Of a schema whose references are put in place for a model; what is beyond is only named. */
  schemaParts: 2_000,
  /** Of a schema that is to judge: parts that are visited for one place of a value, references followed. */
  schemaVisits: 2_000,
  /** Of one judgement, as `bounded-judging.ts` counts: a part of the schema that is visited is ten and more. */
  judgingSteps: 1_000_000,
  /** Of the judgement that only tries whether a schema can be used. */
  tryingSteps: 50_000,
  /** A task that a server works on is looked at again after this long, or as much later as it says. */
  taskPollMinMs: 250,
  taskPollMaxMs: 10_000,
  /** Of what a server asks for in the middle of a call: things, and the characters of each. */
  wantedTold: 5,
  wantedMaxChars: 200,
  /** Places that are told of arguments that do not fit; of arguments longer than this, the first alone. */
  argumentFaults: 10,
  thoroughMaxChars: 10_000,
  /** Of arguments that nearly fit: what is put right at most, how deep, and how many references lead to one schema. */
  argumentChanges: 50,
  coercedDepth: 12,
  coercedRefs: 10,
  /** Of an outcome, as the model reads it. */
  resultMaxChars: 100_000,
  /** Pictures of one result that a model is shown, and bytes of each: all providers take that many. */
  pictures: 8,
  pictureMaxBytes: 3_000_000,
  /** Of an error that is passed on. */
  faultMaxChars: 600
} as const

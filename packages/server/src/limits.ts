/**
 * Limits of the server; each name ends in its unit.
 *
 * **Invariant**: no loop, queue, retry or prompt is unlimited. Each folder has a section here or its own file of limits; limits that a
 * person may set are in `domain`.
 */

/** `models/`: one request to a model. */
export const modelLimits = {
  /** One attempt, from the request to the last part of the answer. */
  requestTimeoutMs: 900_000,
  /** Between two parts of an answer; a definition may override it. */
  silenceTimeoutMs: 120_000,
  /** Before the first part, and before the first part of reasoning or of a call's arguments: twice the above, at most this. */
  firstPieceTimeoutMs: 240_000,
  /** Open requests of one server at one provider's model; an operator may override it. */
  concurrency: 256,
  mostConcurrency: 10_000,
  /** A limit halved by a 429 grows by one after this many answers, and after this long. */
  concurrencyGrowthAnswers: 8,
  concurrencyGrowthMs: 60_000,
  /** A queued request counts as progress for this long. */
  queuedMaxMs: 86_400_000,
  /** Further attempts at one model, all before any output; then the fallback. */
  maxRetries: 3,
  retryBaseMs: 500,
  retryMaxMs: 10_000,
  /** The longest requested pause that is waited for. */
  retryAfterMaxMs: 60_000,
  /** One answer's text and call arguments together: as JSON it fits one PostgreSQL message. */
  answerMaxChars: 1_000_000,
  /** One answer's reasoning and provider metadata, which are stored for the next request; beyond this they are dropped whole. */
  answerPartsMaxChars: 500_000,
  /** Remembered addresses and models that answered; beyond it, a page from another one is a wrong address. */
  answeredMaxAddresses: 1_000,
  /** Tool calls of one answer. */
  answerMaxCalls: 128,
  /** Models with known habits, such as options that they refuse. */
  strictModels: 1_000,
  /** Refusals of one prompt as too long, each followed by a shorter one. */
  windowRefusals: 8,
  /** A model's call id in UTF-8; a suffix makes it unique (`runs/model-answer.ts`). A longer one is replaced. */
  callIdMaxBytes: 2_000,
  /** Input and output tokens of one request, as a provider reports them: the column's maximum. */
  requestMaxTokens: 2_147_483_647,
  /** An error message that is passed on. */
  failureMessageMaxChars: 600,
  /** One Liquid expression or template of a script. */
  scriptParseMaxChars: 20_000,
  /** One Liquid expression or template of a script. */
  scriptRenderTimeoutMs: 1_000,
  /** Liquid's own measure of a template's allocations. */
  scriptMemoryMaxUnits: 2_000_000
} as const

/** `database/`: starting, reaching and stopping PostgreSQL. */
export const databaseLimits = {
  /** One attempt to connect. */
  connectTimeoutMs: 10_000,
  /** An external PostgreSQL that is starting is tried again for this long. */
  startingTimeoutMs: 30_000,
  /** `initdb`, or the final flush of its output. */
  creationTimeoutMs: 120_000,
  /** `initdb` after a termination signal. */
  childEndTimeoutMs: 5_000,
  /** From the start of PostgreSQL to the first login, including crash recovery. */
  startTimeoutMs: 180_000,
  /** Attempts per start: a port may be taken, or the children of a killed server may still be ending. */
  startAttempts: 6,
  startRetryDelayMs: 500,
  /** Between two checks that PostgreSQL is running. */
  aliveCheckIntervalMs: 1_000,
  /** Between two checks of a server that is starting or stopping. */
  pollIntervalMs: 20,
  /** A fast shutdown; after it the server stops immediately and recovers at its next start. */
  stopTimeoutMs: 30_000,
  stopNowTimeoutMs: 10_000,
  /** The orderly part of a shutdown when the program exits early. */
  stopAtOnceTimeoutMs: 2_000,
  /** The log of the embedded PostgreSQL; the current part and the previous one are kept. */
  logMaxBytes: 8_388_608,
  logCheckIntervalMs: 60_000,
  /** A program's error output, as shown in a message. */
  lastWordsMaxChars: 1_500,
  /** Another program on the same database may be creating the roles. */
  provisionLockTimeoutMs: 30_000,
  provisionRetries: 3,
  /** A migration that waits this long for a table lets the sessions in its queue go first, and retries after the same time. */
  migrationLockWaitMs: 2_000,
  /** Since the first failed lock; then the start fails and names the holder. */
  migrationPatienceMs: 60_000,
  /** Between two statements of a migration: a frozen program would keep the tables locked for everyone. */
  migrationIdleMs: 30_000,
  /** Files of PostgreSQL's programs that are copied at once. */
  copiedFiles: 16,
  /** Clusters of one data folder path, in the machine's folder. */
  clusterNames: 100,
  /** Of the embedded PostgreSQL itself. */
  connections: 100,
  sharedBuffersMegabytes: 128,
  walMaxMegabytes: 512,
  /** Interval of the embedded PostgreSQL's autovacuum. */
  autovacuumIntervalSeconds: 5,
  /** An ANALYZE samples 300 times this many rows at once, and writes wait for the processor meanwhile. */
  statisticsTarget: 30
} as const

/** `outbox/` and `cluster/`: notifications between servers, and polling for lost ones. */
export const outboxLimits = {
  /** The work poller's interval: the longest delay of work whose notification was lost. */
  lookIntervalMs: 1_000,
  /** Between two NOTIFY messages: topics of this time are sent together. */
  tellIntervalMs: 10,
  /** Topics queued for the next message; beyond this it means that anything may be due. */
  untoldTopics: 1_000,
  /** Topics of one message: at most 150 characters each, within NOTIFY's 8,000 bytes. */
  letterTopics: 50,
  reconnectDelayMs: 500
} as const

/** `outbox/` and `reactions/`: from a committed event to a queued run. */
export const dispatchLimits = {
  /** Events dispatched in one transaction. */
  batchEvents: 100,
  /** The pause after a round that left no events: under load the next round then takes the events of several milliseconds. */
  roundPauseMs: 5,
  /** Below this remaining capacity an agent's row is locked while its runs are counted; no agent takes more than this at once. */
  sparePlaces: 500,
  /** Refusals by limits that a chain shows; all are stored with their events. */
  chainStopsShown: 20,
  /** Runs that one agent starts in one transaction, of those that waited. */
  releaseRuns: 100,
  /** The shortest pause between two rounds of the releaser. */
  releasePauseMinMs: 5,
  /** Agents whose waiting entries are released in one transaction. */
  releaseAgents: 100,
  /** Lines and single entries that one transaction of the releaser reads, shared between its agents. */
  releaseHeads: 200,
  /** Waiting entries of agents that no longer react, ended in one transaction. */
  releaseSkips: 1_000,
  /** Events that one run handles. */
  runMaxEvents: 1_000,
  /** All attempts of one processing entry. */
  entryMaxAttempts: 20,
  /** Objects that one page of pending events covers. */
  pendingLookObjects: 1_000,
  /** Schedules fired in one transaction. */
  batchSchedules: 50,
  /** A fire time found later than this was missed. Under a minute, so that no two fire times are on time at once. */
  scheduleGraceMs: 59_000,
  /** Between a delivery's timestamp and this server's clock, either way. */
  webhookToleranceMs: 300_000,
  webhooksPerAgent: 20,
  /** Signatures of one delivery that are checked. */
  webhookSignatures: 8,
  /** Retention of a delivery's id; its timestamp is refused long before. */
  deliveryKeptSeconds: 2_592_000,
  /** Old deliveries deleted with each new one. */
  deliveriesForgotten: 10,
  /** Missed fire times of one schedule that are caught up, the newest. */
  catchUpInstants: 100
} as const

/** `runs/`: from a queued run to its end. */
export const runLimits = {
  /** A run that was alone on its server is recorded as one of several this long after another joins. */
  companyAfterMs: 500,
  /** Appends of runs that are committed together. */
  appendBatches: { batchItems: 64, batchBytes: 4 * 1024 * 1024, waitingItems: 4_096 },
  /** A conversation's turn starts this long after the last message, and at most the maximum after the first (S004-R39). */
  debounceQuietMs: 100,
  debounceMaxMs: 1_000,
  /** During a model request: between two checks for messages whose notification was lost, and events of one check. */
  breakInSweepMs: 5_000,
  breakInPageEvents: 200,
  /** How long a project's claims wait until its exhausted runs are ended; a slow end delays nothing else. */
  giveUpPatienceMs: 500,
  /** Concurrent runs of one server; an operator may override it. */
  concurrentRuns: 256,
  mostConcurrentRuns: 10_000,
  /** Models in an agent's usage. */
  usageModels: 100,
  /** One slot in this many is reserved for projects without running runs, and one in this many for backtests. */
  slotsPerSpare: 8,
  slotsPerBacktest: 4,
  /** Runs claimed in one round, and runs that are claimed and not started: another server could take those. */
  claimBatchRuns: 64,
  /** One of this many claims takes a project's oldest run; the others take runs that a person waits for, while there are any. */
  claimsPerOldest: 4,
  /** Without a heartbeat for this long, another worker may take a run over. */
  leaseMs: 30_000,
  heartbeatIntervalMs: 10_000,
  /** Attempts that a run may lose without a stored step in between; a crash shared with other runs does not count. */
  maxAttempts: 3,
  /** Crashes since its last step that make a run a suspect: it is claimed with few other suspects. */
  suspectDeaths: 2,
  /** Concurrent suspects of a server: after that many crashes, after one more, and so on; the last applies to all further ones. */
  suspectGroups: [16, 4, 1],
  /** All claims of one run, however many steps were stored. */
  maxAttemptsInAll: 20,
  /** Exhausted runs that a worker ends, one by one, before it claims others. */
  giveUpBatchRuns: 100,
  /** Between two checks of a run by a caller who waits for its end. */
  callerLookMs: 1_000,
  /** Time for a run's last request after its deadline (S002-R27); migration 0074 repeats it. */
  graceMs: 30_000,
  /** A stop recorded within this time after the deadline leaves the full grace; a later one shortens it. */
  lateStopMs: 1_000,
  /** From an answer's first part to its first partial save, if it is still incomplete: most short answers are complete by then. */
  partialTextDelayMs: 50,
  /** Between two partial saves of an answer. */
  partialTextIntervalMs: 500,
  /** A text longer than this is saved less often, in proportion. */
  partialTextChars: 20_000,
  /**
   * A processing entry without a live run, or a running run without progress, is abandoned after this time; an operator may override it.
   */
  stuckAfterMs: 300_000,
  /** A running tool counts as progress for this long: the longest call of an external server, including connecting and closing. */
  toolAtWorkMs: 720_000,
  /** Stuck runs of a project that are ended, one by one, before the next detection. */
  stuckBatchRuns: 100,
  stuckIntervalMs: 30_000,
  /** A worker that has not polled for this long, while something waited, could not have taken anything meanwhile. */
  attendanceGapMs: 10_000,
  forgetIntervalMs: 3_600_000,
  /** Entries deleted in one transaction, and transactions of one sweep. */
  forgetBatchEntries: 1_000,
  forgetMaxBatches: 1_000,
  switchIntervalMs: 5_000,
  /** Contexts whose heads a verification reads at once, and differences that it lists; the rest are counted. */
  verifyPageContexts: 200,
  differencesShown: 200,
  /** Concurrent verifications of this server, each of another project; the others wait. */
  concurrentVerifications: 2,
  /** How long one may wait and then hold its snapshot, and with it a connection. */
  verifyMaxMs: 1_800_000,
  /** One rendered template in a run's prompt. */
  promptMaxChars: 400_000,
  /** A run's summary: an answer of the largest size fits. Lists show less. */
  summaryMaxChars: 1_000_000,
  listedSummaryMaxChars: 20_000,
  /** Tool lists that are known to be stored. */
  rememberedToolLists: 1_000,
  /** A step's text in the list of steps. */
  stepTextMaxChars: 500,
  /** Depth of runs that spawn each other; the last one spawns none. */
  spawnMaxDepth: 3,
  /** A run's summary, as its parent run reads it. */
  reportMaxChars: 50_000,
  /** Names in a refusal of a spawn, and in the list of agents that may be spawned. */
  spawnableAgents: 100,
  /** Runs past their time and grace that are read at once, to be paused one by one. */
  overtimeBatchRuns: 100,
  /** Runs below an ended one that are read at once, to be cancelled one by one. */
  cancelBatchRuns: 100,
  errorMaxChars: 2_000,
  /** One message, as it is quoted for a summary. */
  quotedMessageMaxChars: 8_000,
  /** A guard's verdict, as it is stored. */
  verdictMaxChars: 2_000,
  /** PostgreSQL's message about a failed attempt. */
  breakCauseMaxChars: 500,
  /** A run whose provider is down waits at most this long in a row (24 h), then it fails. */
  providerWaitMaxMs: 86_400_000,
  /**
   * From the failure that opens a provider's breaker to the first probe; each failed probe doubles it, up to the maximum. A longer
   * Retry-After is respected.
   */
  providerPauseMs: 2_000,
  providerProbeMaxMs: 60_000,
  /** A provider's requested pause is waited for within the request up to this, and in the queue beyond it. */
  providerPauseMaxMs: 5_000,
  /**
   * Consecutive failures of one route at one server before its requests stop retrying by themselves: one request's first attempt and its
   * retries.
   */
  providerFailuresInRow: 4,
  /** Consecutive answers that break off in the middle, before the breaker opens. */
  providerCutsInRow: 3,
  /** Failed attempts of one run while the model answers others in between, before the run fails for good. */
  providerTriesAlone: 8,
  /** Breakers that a server caches. */
  providerRoutes: 1_000,
  /** Waiting runs of one route that are resumed in one transaction, and routes. */
  providerWakeRuns: 100,
  /** How long a manual trigger waits for its run. */
  triggerWaitMs: 60_000,
  /** Rows that share an agent's daily spending; a commit locks only one of them. */
  agentDayRows: 32
} as const

/** `tools/`: one tool call. */
export const toolLimits = {
  /** Objects in one search result. */
  searchMaxItems: 50,
  neighborsMaxItems: 200,
  /** A result as the model reads it, in JSON; a longer one is truncated and says so. */
  resultMaxChars: 100_000,
  /** The arguments of one call, in JSON: an object of the largest size fits. */
  argumentsMaxChars: 400_000,
  /** Unusable arguments: their beginning is stored. */
  faultyArgumentsMaxChars: 2_000,
  /** Arguments of a denied call by a person: their beginning shows what was attempted. */
  deniedArgumentsMaxChars: 10_000,
  nameMaxChars: 200,
  /** A call's id as it is stored, in UTF-8: with the run's id it is in one index row, which PostgreSQL limits to 2,704 bytes. */
  callIdMaxBytes: 2_600,
  /** The SDK's own timeout of a request, in wall time: ours must always expire first. */
  sdkTimeoutMs: 86_400_000,
  /** Tools in one search result, and characters of their descriptions and schemas. */
  foundTools: 10,
  foundMaxChars: 60_000,
  /** Shortened lists that are cached per list of tools. */
  rememberedOffers: 64,
  /** Concurrent calls of one answer. */
  callsAtOnce: 8,
  /** Calls of one run that wait for a client at once. */
  openClientCallsPerRun: 50,
  /** Between two sweeps for calls that a client has not answered in time, and runs of a project in one sweep. */
  overdueIntervalMs: 1_000,
  overdueBatchRuns: 100,
  /** Tool names that a refusal lists. */
  listedTools: 50,
  /** A denial's detail; the call stores the whole refusal. */
  denialDetailMaxChars: 1_000,
  reasoningMaxChars: 4_000
} as const

/** `contexts/` and `agents/`: contexts and their listeners. */
export const agentLimits = {
  /** A session ends when its context has been idle for this long. */
  sessionRestMs: 300_000,
  /** Between two sweeps for such contexts, and sessions ended in one transaction. */
  sessionIntervalMs: 30_000,
  sessionBatchContexts: 100,
  /** One file that an agent is shown. */
  fileMaxBytes: 10_485_760,
  /** From the request for a file to its last byte. */
  fileFetchTimeoutMs: 20_000,
  fileMaxRedirects: 3,
  /** Bytes of files in one prompt; older files are only named. */
  promptFilesMaxBytes: 20_971_520,
  /** Previewed fire times of a schedule. */
  previewFires: 5,
  /** Deltas that wait to be sent to other servers; beyond this the oldest are dropped. */
  passingWords: 10_000,
  /** Events of a log in one query. */
  logPageEvents: 1_000,
  /** Events after a context's last snapshot that cause another one. */
  snapshotEvents: 500,
  /** A window larger than this is folded from its log each time, because its snapshot would be about 10 MB. */
  snapshotMaxTokens: 2_000_000,
  /** Cached agent versions, which never change. */
  rememberedVersions: 1_000,
  /** Days of a schedule that are checked for neighbours: years of any but the rarest. */
  scheduleDays: 400,
  /** Matches of a cron expression checked for one fire time: the minutes of a day, the longest period that a clock change ever repeated. */
  cronSteps: 1_500
} as const

/** `chat/`: reading conversations. */
export const conversationLimits = {
  /** Events of a log in one query, for a page of messages. */
  logPageEvents: 200,
  /** Messages that an export reads at once. */
  exportPageMessages: 100
} as const

/** `telemetry/`: spans and metrics. */
export const telemetryLimits = {
  exportIntervalMs: 5_000,
  /** Between two exports of metrics, and two reads of the gauges. */
  figuresIntervalMs: 60_000,
  /** Spans exported together. */
  batchSpans: 512,
  /** Export of the last spans, when the server stops. */
  shutdownTimeoutMs: 3_000,
  /** A prompt, an answer, an argument or a result in a span. */
  contentMaxChars: 20_000,
  /** Values of one label that come from definitions; further ones become `other`. */
  labelValues: 100,
  /** Dead letters and tasks that a scrape counts; beyond this it reports this number. */
  countedMax: 10_000,
  /** Resolution of the event loop lag. */
  lagResolutionMs: 20
} as const

/** `http/`: requests; live streams and tokens have theirs in `http/limits.ts`. */
export const httpLimits = {
  bodyMaxBytes: 1_048_576,
  /** From a request's head to the end of its body; an imported file may take longer. */
  bodyTimeoutMs: 60_000,
  /**
   * The part of a body that is too large which is read and dropped before the refusal, so that a client that sends first and then reads
   * sees it.
   */
  dropMaxBytes: 16_777_216,
  dropTimeoutMs: 5_000,
  /** Silence in such a body after which its client is taken to wait for the answer. */
  dropQuietMs: 250,
  /** Idle keep-alive of a connection: longer than the minute that clients and balancers use, so that they close it. */
  keepAliveMs: 75_000,
  /** Time for open requests to finish when the server stops. */
  drainTimeoutMs: 10_000,
  /** Retry-After of a 429 when an agent has too many pending runs. */
  pendingRetryAfterSeconds: 5
} as const

/** `graph/`: writes, reads and imports. */
export const graphLimits = {
  /** A merged document of at most this size, in PostgreSQL's form, exceeds no limit: 1,001 keys take more. */
  uninspectedBytes: 6_000,
  /**
   * A transaction's changes by people; their properties in bytes; and the waiting changes of all projects, beyond which further ones queue.
   */
  batchChanges: 64,
  batchBytes: 1_048_576,
  waitingChanges: 2_000,
  /** A batch waits this long for another transaction that is about to write the same key; then each change is written separately. */
  batchLockWaitMs: 50,
  /** Attempts of a statement whose row changed while it waited for its lock. */
  undecidedTries: 3,
  /** One full-text query. */
  searchWords: 10,
  /** Only the newest matching objects are ranked; older ones come in no particular order. */
  rankedObjects: 10_000,
  /** Lists are counted up to this number. */
  countedObjects: 100_000,
  /** Entities that a verification compares in one query, and differences that it lists; the rest are counted. */
  verifyPageEntities: 500,
  verifyPageFaults: 200,
  /** Relationships that are deleted or restored with an object, in one statement. */
  turnedRelationships: 1_000,
  /** Extra relationships read per object and direction, since several may lead to one object. */
  neighborSpareRelationships: 100,
  /** Relationships between an object's neighbours. */
  neighborRelationships: 1_000,
  /** Events from a value to its root: more than the maximum depth of a chain. */
  provenanceHops: 64,
  /** Changes that an import commits together. */
  importBatchChanges: 50,
  /** One package-lock.json; the largest known have about ten thousand packages. */
  lockfileMaxChars: 67_108_864,
  lockfilePackages: 100_000,
  lockfileDependencies: 500_000,
  lockfileRangeMaxChars: 4_000,
  /** Listed faults of one file; the rest are counted. */
  lockfileFaultsShown: 20,
  /** Another lockfile's name in a refusal. */
  lockfileNameShownMaxChars: 200
} as const

/** `graph/`: imports and exports by line. */
export const transferLimits = {
  /** One line or CSV record: an object of the largest size with every character escaped would not fit, and none is like that. */
  lineMaxBytes: 1_048_576,
  /** The beginning of a CSV file that decides the number format of its columns; at most one line's limit. */
  numberSampleBytes: 262_144,
  /** Lines that an import commits together. */
  batchLines: 100,
  /** Bytes of lines that complete a batch early. */
  batchBytes: 1_048_576,
  /** Lines after which an import has grown tables analyzed, and again each time their number has doubled. */
  countAfterLines: 500,
  /** Concurrent batches of all imports of this server; its other connections are for everyone. */
  concurrentBatches: 3,
  /** Lockfiles in this server's memory at once, each of another project; the others wait before they are read. */
  concurrentLockfiles: 3,
  /** From a lockfile's turn to its last byte, because others may wait for theirs. */
  lockfileTimeoutMs: 300_000,
  /** Attempts of a batch in conflict with other writers, before its failures count as bad lines. */
  batchCarefulTries: 5,
  /** All attempts of a batch. */
  batchTries: 20,
  /** Bad lines of one import that are reported and stored; the rest are counted. */
  badLinesShown: 100,
  badLineMaxChars: 500,
  /** A sender that is silent for this long is gone. */
  senderSilenceMs: 300_000,
  /** Between two heartbeats of an import's record, and the silence after which its sender is gone. */
  touchIntervalMs: 10_000,
  silentAfterMs: 60_000,
  /** Concurrent exports of this server, each of another project; the others wait. */
  concurrentExports: 3,
  /** How long an export may wait and then hold its snapshot, and with it a connection. */
  exportMaxMs: 1_800_000,
  /** Rows and bytes of one read of an export; it ends with the row that reaches the limit. */
  exportPageRows: 500,
  exportPageBytes: 1_048_576,
  exportTypes: 100
} as const

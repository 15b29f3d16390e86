/**
 * The bounds of the server, their unit last in their names.
 *
 * No loop, queue, retry or prompt is without one. Each folder has a section here
 * or a file of limits of its own; a bound that a person may set stands in `domain`.
 */

/** Of `model/`: one request to a model. */
export const modelLimits = {
  /** One attempt, from the request to the last part of the answer. */
  requestTimeoutMs: 900_000,
  /** Between two parts of an answer, and before the first: slow thinkers and slow machines are not dead. */
  silenceTimeoutMs: 240_000,
  /** Requests that one server has open at one provider's model; an operator may say otherwise. */
  concurrency: 256,
  mostConcurrency: 10_000,
  /** A limit that a provider's 429 has halved grows by one after so many answers, and after so long. */
  concurrencyGrowthAnswers: 8,
  concurrencyGrowthMs: 60_000,
  /** A queued request counts as progress for this long. */
  queuedMaxMs: 86_400_000,
  /** Further attempts at one model, each before any output; then the fallback. */
  maxRetries: 3,
  retryBaseMs: 500,
  retryMaxMs: 10_000,
  /** A server that asks for a longer pause than this is not waited for. */
  retryAfterMaxMs: 60_000,
  /** Of one answer, its text and the arguments of its calls together: in JSON it fits one message of PostgreSQL. */
  answerMaxChars: 1_000_000,
  /** Of one answer's reasoning and what its provider attaches, which are kept for the next request; more is left out whole. */
  answerPartsMaxChars: 500_000,
  /** Tool calls of one answer. */
  answerMaxCalls: 128,
  /** Models of which it is known that they refuse what others take. */
  strictModels: 1_000,
  /** Refusals of one prompt as too long, each followed by a shorter one. */
  windowRefusals: 8,
  /** Of the id that a model gives a call, in UTF-8; what tells it from others comes behind it (`runs/model-answer.ts`). A longer one gets a stand-in. */
  callIdMaxBytes: 2_000,
  /** Of one request, in and out each, as a provider reports them: a column holds no more. */
  requestMaxTokens: 2_147_483_647,
  /** Of an error's text that is passed on. */
  failureMessageMaxChars: 600,
  /** Of one Liquid expression or template of a script. */
  scriptParseMaxChars: 20_000,
  /** For one Liquid expression or template of a script. */
  scriptRenderTimeoutMs: 1_000,
  /** Liquid's own count of what a template allocates. */
  scriptMemoryMaxUnits: 2_000_000
} as const

/** Of `database/`: starting, reaching and ending PostgreSQL. */
export const databaseLimits = {
  /** One attempt to connect. */
  connectTimeoutMs: 10_000,
  /** An outside PostgreSQL that answers "I am starting" is asked again for this long. */
  startingTimeoutMs: 30_000,
  /** `initdb`, or the final flush of what it wrote. */
  creationTimeoutMs: 120_000,
  /** `initdb` when it is told to end. */
  childEndTimeoutMs: 5_000,
  /** From the start of PostgreSQL to the first login; a recovery after a crash lies in between. */
  startTimeoutMs: 180_000,
  /** Starts in one go: a port may be taken, or leftovers of a killed server may still be ending. */
  startAttempts: 6,
  startRetryDelayMs: 500,
  /** Between two looks at whether PostgreSQL is still there. */
  aliveCheckIntervalMs: 1_000,
  /** Between two looks at a server that starts or ends. */
  pollIntervalMs: 20,
  /** A fast shutdown; after it the server is told to drop everything, which its next start repairs. */
  stopTimeoutMs: 30_000,
  stopNowTimeoutMs: 10_000,
  /** How long it may take in good order when whoever ends the program does not want to wait. */
  stopAtOnceTimeoutMs: 2_000,
  /** The log of the embedded PostgreSQL; it is kept twice, the current part and the one before. */
  logMaxBytes: 8_388_608,
  logCheckIntervalMs: 60_000,
  /** Of a program's last words, as shown in an error. */
  lastWordsMaxChars: 1_500,
  /** Another program on the same database may be making the roles. */
  provisionLockTimeoutMs: 30_000,
  provisionRetries: 3,
  /** A migration that waits so long for a table lets everybody before whom it stands go first, and begins anew after as long. */
  migrationLockWaitMs: 2_000,
  /** Since it first could not have a table; then the start says who has it. */
  migrationPatienceMs: 60_000,
  /** Between two of its statements: a program that stands still meanwhile has locked the tables for all others. */
  migrationIdleMs: 30_000,
  /** Files of PostgreSQL's programs that are copied at once. */
  copiedFiles: 16,
  /** Clusters of one data folder's path, in the folder that is the machine's. */
  clusterNames: 100,
  /** Of the embedded PostgreSQL itself. */
  connections: 100,
  sharedBuffersMegabytes: 128,
  walMaxMegabytes: 512,
  /** Between two looks of the embedded PostgreSQL at which tables need new statistics. */
  autovacuumIntervalSeconds: 5,
  /** As many rows for each: 300 times this many are looked at in a table, at once, and writes wait for a processor meanwhile. */
  statisticsTarget: 30
} as const

/** Of `outbox/` and `cluster/`: wake-ups, between servers and of what no wake-up told of. */
export const outboxLimits = {
  /** Between two looks of the lookout for work that is due: so long, at most, what a lost wake-up told of has to wait. */
  lookIntervalMs: 1_000,
  /** Between two letters: what is said meanwhile goes out together. */
  tellIntervalMs: 10,
  /** Topics kept for the next letter; when they are more, it says that anything may be due. */
  untoldTopics: 1_000,
  /** Topics of one letter: of at most 150 characters each, in less than the 8,000 bytes that NOTIFY takes. */
  letterTopics: 50,
  reconnectDelayMs: 500
} as const

/** Of `outbox/` and `dispatch/`: from a committed event to a queued run. */
export const dispatchLimits = {
  /** Events dispatched in one transaction. */
  batchEvents: 100,
  /** After a round that left no events, before the next: under load a round then takes the events of some milliseconds. */
  roundPauseMs: 5,
  /** Where fewer places than these would be left below its maxPendingRuns, an agent is held while they are counted; others take no more in one moment. */
  sparePlaces: 500,
  /** Refusals by caps that a chain tells; all of them stand with their events. */
  chainStopsShown: 20,
  /** Runs that one agent begins in one transaction, of what waited. */
  releaseRuns: 100,
  /** Between two rounds of the releaser, however soon something is due. */
  releasePauseMinMs: 5,
  /** Agents whose waiting entries are released in one transaction. */
  releaseAgents: 100,
  /** Lines and single entries that one transaction of the releaser looks at, shared out among its agents. */
  releaseHeads: 200,
  /** Waiting entries of agents that react no more, ended in one transaction. */
  releaseSkips: 1_000,
  /** Events that one run handles. */
  runMaxEvents: 1_000,
  /** Tries of one processing entry in all. */
  entryMaxAttempts: 20,
  /** Objects that one page of pending events looks at. */
  pendingLookObjects: 1_000,
  /** Schedules fired in one transaction. */
  batchSchedules: 50,
  /** An instant that is found later than this was missed. Under a minute: then no two instants are on time at once. */
  scheduleGraceMs: 59_000,
  /** Between a delivery's timestamp and this server's clock, either way. */
  webhookToleranceMs: 300_000,
  webhooksPerAgent: 20,
  /** Signatures of one delivery that are looked at. */
  webhookSignatures: 8,
  /** A delivery's id is remembered for this long, and its timestamp is refused long before. */
  deliveryKeptSeconds: 2_592_000,
  /** Old deliveries that go with each new one. */
  deliveriesForgotten: 10,
  /** Missed instants of one schedule that are made up for, the newest. */
  catchUpInstants: 100
} as const

/** Of `run/`: from a queued run to its end. */
export const runLimits = {
  /** A run that was alone on its server is noted as one of several so long after another joined it. */
  companyAfterMs: 500,
  /** Appends of runs that are written together. */
  appendBatches: { batchItems: 64, batchBytes: 4 * 1024 * 1024, waitingItems: 4_096 },
  /** A turn of a conversation begins so long after the last message, and no longer after the first (S004-R39). */
  debounceQuietMs: 100,
  debounceMaxMs: 1_000,
  /** While a model is asked: between two looks for messages of which no wake-up told, and events of one look. */
  breakInSweepMs: 5_000,
  breakInPageEvents: 200,
  /** For so long the claims of a project wait for its spent runs to be ended; whatever holds those up holds up nobody else. */
  giveUpPatienceMs: 500,
  /** Runs that one server works on at once; an operator may say otherwise. */
  concurrentRuns: 256,
  mostConcurrentRuns: 10_000,
  /** Models of which is said what an agent has used. */
  usageModels: 100,
  /** One slot in this many is kept free for projects that have no run at work, and one in this many is for runs of backtests. */
  slotsPerSpare: 8,
  slotsPerBacktest: 4,
  /** Runs claimed in one round, and runs that are claimed and have not begun: another server could have those. */
  claimBatchRuns: 64,
  /** One of so many runs that are taken from a project's queue is its oldest; the others are those that somebody waits for, while there are any. */
  claimsPerOldest: 4,
  /** Without a heartbeat for this long, another worker may take a run over. */
  leaseMs: 30_000,
  heartbeatIntervalMs: 10_000,
  /** Attempts that one run may lose with no step kept between them; a death that others share is none of them. */
  maxAttempts: 3,
  /** Deaths since its last step that make a run a suspect: it is claimed with few other suspects. */
  suspectDeaths: 2,
  /** Suspects that a server works on at once: after as many deaths, after one more, and so on; the last holds for all further. */
  suspectGroups: [16, 4, 1],
  /** Claims of one run in all, however many steps were kept. */
  maxAttemptsInAll: 20,
  /** Runs that a worker gives up, one after the other, before it claims others. */
  giveUpBatchRuns: 100,
  /** Between two looks at a run by a caller who waits for its end. */
  callerLookMs: 1_000,
  /** The last request of a run whose time is up may take this long (S002-R27); migration 0074 repeats it. */
  graceMs: 30_000,
  /** A stop that is written so long after the deadline still leaves the whole grace; a later one takes from it. */
  lateStopMs: 1_000,
  /** From the first piece of an answer to when it is kept, if more is still to come: most short answers are complete by then. */
  partialTextDelayMs: 50,
  /** Between two times that the text of an answer which still comes is kept. */
  partialTextIntervalMs: 500,
  /** A text that is longer than this is kept less often, by as much as it is longer. */
  partialTextChars: 20_000,
  /** A processing entry without a live run for this long is abandoned, and a run at work of which nothing comes; an operator may say otherwise. */
  stuckAfterMs: 300_000,
  /** A tool at work counts as progress for this long: the longest that a foreign server may take, with the connection before and the parting behind. */
  toolAtWorkMs: 720_000,
  /** Runs of such entries that are ended in a project, one after the other, before the detector looks again. */
  stuckBatchRuns: 100,
  stuckIntervalMs: 30_000,
  /** A worker that has not looked for so long, while something waited, could have taken nothing meanwhile. */
  attendanceGapMs: 10_000,
  forgetIntervalMs: 3_600_000,
  /** Entries removed in one transaction, and transactions in one sweep. */
  forgetBatchEntries: 1_000,
  forgetMaxBatches: 1_000,
  switchIntervalMs: 5_000,
  /** Contexts whose heads a verification reads at once, and differences that it tells; the others are counted. */
  verifyPageContexts: 200,
  differencesShown: 200,
  /** Verifications that this server makes at once, each of another project; the others wait. */
  concurrentVerifications: 2,
  /** How long one may wait and then hold its snapshot, and with it a connection. */
  verifyMaxMs: 1_800_000,
  /** What a run's prompt may hold of one rendered template. */
  promptMaxChars: 400_000,
  /** Of a run's summary: an answer of the largest size fits. In a list, less of it is told. */
  summaryMaxChars: 1_000_000,
  listedSummaryMaxChars: 20_000,
  /** Lists of tools that are known to be on record. */
  rememberedToolLists: 1_000,
  /** Of what a step said, as the list of steps tells it. */
  stepTextMaxChars: 500,
  /** Runs that spawned one another in a row: the last of them spawns none. */
  spawnMaxDepth: 3,
  /** Of a run's summary, as the run that spawned it reads it. */
  reportMaxChars: 50_000,
  /** Names that a refusal of a spawn, or the list of agents that may be spawned, tells. */
  spawnableAgents: 100,
  /** Runs whose time and grace are over that are looked up at once, to be paused one after the other. */
  overtimeBatchRuns: 100,
  /** Runs below an ended one that are looked up at once, to be cancelled one after the other. */
  cancelBatchRuns: 100,
  errorMaxChars: 2_000,
  /** Of one message, as it is quoted to whoever sums up. */
  quotedMessageMaxChars: 8_000,
  /** Of what a guard said, as it is kept. */
  verdictMaxChars: 2_000,
  /** Of what PostgreSQL said when it broke an attempt. */
  breakCauseMaxChars: 500,
  /** A run whose provider is away waits at most this long in a row (24 h), then it fails. */
  providerWaitMaxMs: 86_400_000,
  /** From the failure that opens a provider's breaker to the first probe; each probe that fails doubles it, up to the maximum. A longer Retry-After is kept. */
  providerPauseMs: 2_000,
  providerProbeMaxMs: 60_000,
  /** A pause that a provider asks for is waited for within the request up to this, and in the queue beyond it. */
  providerPauseMaxMs: 5_000,
  /** Tries of one route that fail in a row at one server before its requests stop retrying by themselves: one request's first try and its retries. */
  providerFailuresInRow: 4,
  /** Answers that break off in the middle, in a row, before the breaker opens. */
  providerCutsInRow: 3,
  /** Tries of one run that fail while the model answers others in between, before the run fails for good. */
  providerTriesAlone: 8,
  /** Breakers that a server keeps at hand. */
  providerRoutes: 1_000,
  /** Waiting runs of one route that are let go on in one transaction, and routes. */
  providerWakeRuns: 100,
  /** How long a manual trigger waits for its run. */
  triggerWaitMs: 60_000,
  /** Rows in which an agent's spending of one day is counted, each locked by one commit at a time. */
  agentDayRows: 32
} as const

/** Of `tool/`: one tool call. */
export const toolLimits = {
  /** Objects that one search answers. */
  searchMaxItems: 50,
  neighborsMaxItems: 200,
  /** Of an outcome as the model reads it, in JSON text; more is cut, and says so. */
  resultMaxChars: 100_000,
  /** Of the arguments of one call, in JSON text: an object of the largest size fits. */
  argumentsMaxChars: 400_000,
  /** Of arguments that no tool can be given: their beginning is kept. */
  faultyArgumentsMaxChars: 2_000,
  /** Of arguments of a call that a person may not make: their beginning tells what was tried. */
  deniedArgumentsMaxChars: 10_000,
  nameMaxChars: 200,
  /** Of a call's id as it is recorded, in UTF-8: beside the run's it stands in one row of an index, of which PostgreSQL takes 2,704 bytes. */
  callIdMaxBytes: 2_600,
  /** The SDK's own bound of a request, by the wall's time: ours must always come first. */
  sdkTimeoutMs: 86_400_000,
  /** Tools that one search answers, and characters of their descriptions and schemas. */
  foundTools: 10,
  foundMaxChars: 60_000,
  /** Shortened lists that are remembered of one list of tools. */
  rememberedOffers: 64,
  /** Calls of one answer that are made side by side. */
  callsAtOnce: 8,
  /** Calls of one run that wait for a client at once. */
  openClientCallsPerRun: 50,
  /** Between two looks for calls that a client has not answered in time, and runs of a project that one look takes. */
  overdueIntervalMs: 1_000,
  overdueBatchRuns: 100,
  /** Names of tools that a refusal lists. */
  listedTools: 50,
  /** Of what a denial says; the call keeps the whole refusal. */
  denialDetailMaxChars: 1_000,
  reasoningMaxChars: 4_000
} as const

/** Of `agent/`: contexts and those who listen to them. */
export const agentLimits = {
  /** A session ends when its context has rested for so long. */
  sessionRestMs: 300_000,
  /** Between two looks for such contexts, and how many sessions end in one transaction. */
  sessionIntervalMs: 30_000,
  sessionBatchContexts: 100,
  /** Of one file that an agent is shown. */
  fileMaxBytes: 10_485_760,
  /** From the request for a file to its last byte. */
  fileFetchTimeoutMs: 20_000,
  fileMaxRedirects: 3,
  /** Bytes of files in one prompt; older ones are only named. */
  promptFilesMaxBytes: 20_971_520,
  /** Instants of a schedule that are told ahead. */
  previewFires: 5,
  /** Pieces of answers that wait to be passed on to other servers; beyond them the oldest are forgotten. */
  passingWords: 10_000,
  /** Events read from a log in one query. */
  logPageEvents: 1_000,
  /** Events behind the last snapshot of a context for which another is kept. */
  snapshotEvents: 500,
  /** Of a window: one that is larger is folded anew from its log, for its snapshot would be some 10 MB. */
  snapshotMaxTokens: 2_000_000,
  /** Versions of agents, which never change, that are kept in memory. */
  rememberedVersions: 1_000,
  /** Days of a schedule looked at to learn whether two of them are neighbours: years of any but the rarest. */
  scheduleDays: 400,
  /** Matches of a cron expression looked at for one instant: the minutes of the longest hour that ever returned, a day. */
  cronSteps: 1_500
} as const

/** Of `chat/`: conversations as they are read. */
export const conversationLimits = {
  /** Events read from a log in one query, for a page of messages. */
  logPageEvents: 200,
  /** Messages that an export reads at once. */
  exportPageMessages: 100
} as const

/** Of `telemetry/`: spans and figures for whoever watches. */
export const telemetryLimits = {
  exportIntervalMs: 5_000,
  /** Of figures that are sent; as often the gauges are read. */
  figuresIntervalMs: 60_000,
  /** Spans that are sent together. */
  batchSpans: 512,
  /** The last spans, when the server stops. */
  shutdownTimeoutMs: 3_000,
  /** Of a prompt, an answer, an argument or a result in a span. */
  contentMaxChars: 20_000,
  /** Values of one label of a figure that come from definitions; further ones are told as `other`. */
  labelValues: 100,
  /** Dead letters and tasks that a scrape counts; where there are more it tells this number. */
  countedMax: 10_000,
  /** How closely the lag of the event loop is watched. */
  lagResolutionMs: 20
} as const

/** Of `http/`: requests; live streams have theirs in `http/limits.ts`, tokens in `http/limits.ts`. */
export const httpLimits = {
  bodyMaxBytes: 1_048_576,
  /** From the head of a request to the end of its body; a file that is imported may take longer. */
  bodyTimeoutMs: 60_000,
  /** Of a body that is too large, read and dropped before the refusal, so that a client that sends first and reads then sees it. */
  dropMaxBytes: 16_777_216,
  dropTimeoutMs: 5_000,
  /** Of such a body nothing came for so long: its client waits for the answer. */
  dropQuietMs: 250,
  /** A connection that waits for its next request: longer than the minute for which clients and balancers keep theirs, so that it is theirs to close. */
  keepAliveMs: 75_000,
  /** How long requests under way may take to end when the server stops. */
  drainTimeoutMs: 10_000,
  /** What 429 tells a door whose agent has too many runs. */
  pendingRetryAfterSeconds: 5
} as const

/** Of `graph/`: writes, reads and imports. */
export const graphLimits = {
  /** A merged document of at most this size, as PostgreSQL writes it, breaks no bound: 1,001 keys take more. */
  uninspectedBytes: 6_000,
  /** Changes of people that one transaction writes; their properties in bytes; and changes of all projects that wait for one, beyond which further ones queue. */
  batchChanges: 64,
  batchBytes: 1_048_576,
  waitingChanges: 2_000,
  /** A batch waits this long for another transaction that is about to write the same key; then each change is written by itself. */
  batchLockWaitMs: 50,
  /** Tries of a statement whose row changed while it waited for its lock. */
  undecidedTries: 3,
  /** Of one full-text query. */
  searchWords: 10,
  /** The newest objects that fit a query are ranked; what is older comes in no order of its own. */
  rankedObjects: 10_000,
  /** How far a list is counted. */
  countedObjects: 100_000,
  /** Entities that a verification compares in one question, and differences that it is told of them; the others are counted. */
  verifyPageEntities: 500,
  verifyPageFaults: 200,
  /** Relationships that go or come back with an object, in one statement. */
  turnedRelationships: 1_000,
  /** Of one object and direction that are read beyond the objects asked for, since several may lead to one object. */
  neighborSpareRelationships: 100,
  /** Of the relationships between an object's neighbours. */
  neighborRelationships: 1_000,
  /** Events on the way from a value to its root: more than a chain may be deep. */
  provenanceHops: 64,
  /** Changes that an import commits together. */
  importBatchChanges: 50,
  /** Of one package-lock.json; the largest seen in the wild have some ten thousand packages. */
  lockfileMaxChars: 67_108_864,
  lockfilePackages: 100_000,
  lockfileDependencies: 500_000,
  lockfileRangeMaxChars: 4_000,
  /** Faults of one file that are told; the others are counted. */
  lockfileFaultsShown: 20,
  /** Of another lockfile's name that a refusal tells. */
  lockfileNameShownMaxChars: 200
} as const

/** Of `graph/`: files of lines that come and go. */
export const transferLimits = {
  /** Of one line, or one CSV record: an object of the largest size with every character escaped would not fit, and none is. */
  lineMaxBytes: 1_048_576,
  /** Lines that an import commits together. */
  batchLines: 100,
  /** Bytes of lines after which a batch is committed before it is full. */
  batchBytes: 1_048_576,
  /** Lines after which an import has grown tables counted, and again each time that it has become twice as long. */
  countAfterLines: 500,
  /** Batches of all imports that this server commits at once; the others of its connections are everybody's. */
  concurrentBatches: 3,
  /** Lockfiles that this server has in memory at once, each of another project; the others wait before they are read. */
  concurrentLockfiles: 3,
  /** From a lockfile's turn to its last byte: others may wait for theirs. */
  lockfileTimeoutMs: 300_000,
  /** Tries of a batch that other writers were in the way of, before what they make of its lines is told as bad lines. */
  batchCarefulTries: 5,
  /** Tries of a batch in all. */
  batchTries: 20,
  /** Bad lines of one import that are told and kept; the others are counted. */
  badLinesShown: 100,
  badLineMaxChars: 500,
  /** A sender that sends nothing for so long is gone. */
  senderSilenceMs: 300_000,
  /** How often a record says that its sender is still there, and after how long without that it is not. */
  touchIntervalMs: 10_000,
  silentAfterMs: 60_000,
  /** Exports that this server writes at once, each of another project; the others wait. */
  concurrentExports: 3,
  /** How long an export may wait and then hold its snapshot, and with it a connection. */
  exportMaxMs: 1_800_000,
  /** Rows and bytes of one read of an export; it ends with the row that makes it as large. */
  exportPageRows: 500,
  exportPageBytes: 1_048_576,
  exportTypes: 100
} as const

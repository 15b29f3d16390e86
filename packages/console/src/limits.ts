/**
 * Every bound of the console, with its unit in its name.
 */
export const limits = {
  /** From a request to the end of its answer: longer than the server asks a foreign MCP server, which takes longest. */
  requestTimeoutMs: 120_000,
  /** How often lists are read again; a new suggestion is a task and no graph event, so the feed alone would miss it. */
  refreshIntervalMs: 4_000,
  /** The same when more than one page waits: each refresh then reads every page. */
  longListRefreshIntervalMs: 15_000,
  /** How often it is asked who one is; a refusal asks at once. */
  principalIntervalMs: 10_000,
  /** Suggestions asked for at once; the server's own maximum. */
  tasksPerPage: 200,
  /** Pages of suggestions that are listed; what lies behind comes up as the first ones are decided. */
  maxTaskPages: 5,
  /** Decisions that travel in one request; the server takes 200, fewer let the list be seen to shrink. */
  decisionsPerRequest: 50,
  /** Runs in the side panel. */
  recentRuns: 15,
  /** From so long on, a time in which a run did nothing has a line of its own. */
  shownGapMs: 1_000,
  /** A shorter wait is drawn to the scale of the work, however short the work was. */
  shortestBreakMs: 10_000,
  /** Runs at work that are counted; of more it is said that there are more. */
  countedRuns: 50,
  /** Of a line of the palette. */
  maxPaletteCharacters: 90,
  /** Of what a model was shown, the latest messages that are drawn at first. */
  maxMessages: 40,
  /** How often the code of a page is asked for again, and the pause before, until the page says that it is not here. */
  pageRetries: 2,
  pageRetryMs: 700,
  /** Where a browser does not tell when it is idle, the code of the next page is fetched after so long. */
  idleMs: 2_000,
  /** Longer than the time between two frames. */
  frameMs: 30,
  /** How often a change is made anew on top of what somebody else was quicker with. */
  overtakenRetries: 3,
  /** Versions of an object that are searched for the one an agent saw. */
  historyPerPage: 200,
  /** Evidence that is listed under one suggestion. */
  maxEvidence: 50,
  /** What a suggestion said before it was refined. */
  maxEarlierRevisions: 20,
  /** Nested objects are compared property by property down to here, and as a whole below. */
  maxDiffDepth: 4,
  /** Rows of a diff that are shown before somebody asks for all. */
  maxDiffRows: 8,
  /** Lines and characters of one value that are shown before somebody asks for all. */
  maxValueLines: 6,
  maxValueCharacters: 400,
  /** Characters of a long text that are shown on each side of what differs. */
  differenceContextCharacters: 120,
  /** Characters of one value that are ever put on the page: the server takes objects of 256 KiB. */
  maxShownCharacters: 20_000,
  /** A feed that is silent for this long is dead: the server's heartbeat is 5 s. */
  feedSilenceMs: 15_000,
  /** The pause before a lost feed is opened again doubles from the first to the second. */
  feedRetryMs: 1_000,
  maxFeedRetryMs: 30_000,
  /** Wake-ups that come together make one refresh. */
  wakeUpPauseMs: 250,
  /** A decision key is deaf for this long after the list moved by itself, so that a double press decides once. */
  settleMs: 350,
  /** Letters that were meant for a field which was taken away mean nothing until no key came for so long. */
  typingRestMs: 1_000,
  /** So long the card that a link leads to is kept in view while the page is being drawn. */
  linkSettleMs: 5_000,
  /** How long a result stays on the page; a refusal stays longer, because it has to be read. */
  toastMs: 6_000,
  refusalToastMs: 14_000,
  maxToasts: 4,
  /** A letter after `g` counts as a jump for so long. */
  jumpMs: 1_500,
  /** Rows of a long list that are asked for at once; the server's own maximum. */
  rowsPerPage: 200,
  /** Pages of a long list that a wake-up reads again; of a longer one only the head. */
  maxLivePages: 2,
  /** Rows of a long list drawn beyond what is seen. */
  overscanRows: 12,
  /** A search begins when nobody has typed for so long. */
  searchPauseMs: 180,
  /** Entries of one group that the palette shows. */
  paletteRows: 8,
  /** The server's bound for the words of a search. */
  maxSearchCharacters: 500,
  /** What the picture of a graph draws at most; of relationships, what it looks at. */
  maxDrawnObjects: 10_000,
  maxDrawnRelationships: 20_000,
  /** Types in the legend of the picture, and related objects beside it. */
  maxLegendTypes: 24,
  maxNeighborsShown: 50,
  /** Properties of an object that a row of the graph says, and characters of one. */
  maxPropertiesSaid: 4,
  maxPropertyCharacters: 60,
  /** Newest imports of which the graph tells those at work, and how often it looks how far they are. */
  importsShown: 10,
  importRefreshMs: 1_000,
  /** Agents that are read to be searched and sorted by trouble. */
  agentsToSort: 1_000,
  /** Objects that a search offers to choose from. */
  objectsToChoose: 20,
  /** Newest events that a person may choose from. */
  eventsToChoose: 20,
  /** Events of a dry run that are listed at once: each tells all that the agent would do. */
  backtestEventsPerPage: 50,
  /** Characters of JSON that are shown before somebody asks for all. */
  maxJsonCharacters: 20_000,
  /** Events of a stream that a page keeps; older ones are read from the log. */
  maxStreamEvents: 5_000,
  /** Pages of events that are read after a cut; behind a longer one the feed begins anew at its end. */
  maxMissedPages: 5,
  /** The longest pause before a message is sent again under its key after a cut. */
  maxChatRetryMs: 5_000,
  /** After so many in vain, which take five minutes, only a person sends it again. */
  maxChatTries: 60,
  /** Pages of messages that a conversation shows. */
  maxMessagePages: 10,
  /** How often it is looked whom an event woke, or whether an answer is there. */
  wokenRefreshMs: 1_500,
  /** The longest token that the server reads, a JWT of 8 KiB. */
  maxTokenCharacters: 8_192,
  /** The server's bound for a reason. */
  maxReasonCharacters: 2_000,
  /** The server's bound for an answer. */
  maxAnswerCharacters: 20_000
} as const

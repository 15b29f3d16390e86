/**
 * Every bound of the command line, the unit in its name.
 */
export const limits = {
  /** Records that one list command prints unless it is told otherwise. */
  listedRecords: 50,
  /** Records that one list command prints at most. */
  listedRecordsMost: 10_000,
  /** Pages of one list that one command reads: ten million records. */
  pagesRead: 50_000,
  /** How often runs are asked for while some are open, and while none is. */
  runPollBusyMs: 400,
  runPollIdleMs: 1_500,
  /** Pages of the newest runs that one look reads. */
  runPagesPerLook: 20,
  /** Open runs, older than those pages, that one look asks for one by one. */
  openRunsPerLook: 20,
  /** Links that lead to one another before the file that is written. */
  followedLinks: 20,
  /** Ended runs that are remembered so that none is told twice. */
  rememberedRuns: 5_000,
  /** Object keys that are remembered so that each is asked for once. */
  rememberedKeys: 5_000,
  /** How often a request is made again that has no second effect: a few seconds. */
  requestRetries: 4,
  /** How often `run` asks again for the run it wants: about a minute and a half. */
  triggerRetries: 20,
  /** How long a command waits at its beginning for a server that is not ready yet, or busy; `run` asks about as long for its run. */
  readyWaitMs: 90_000,
  /** How long `run` waits for the run to end. */
  runWaitMs: 60 * 60_000,
  /** How many tasks are approved or rejected by one command. */
  tasksPerCommand: 200,
  /** The least time between two drawings of the progress bar. */
  redrawMs: 50,
  /** Sendings of one file that break off in a row, without a line more being committed, before an import is given up: about two minutes. */
  brokenImportsInARow: 16,
  /** Sendings of one file that the server itself says failed, without a line more being committed: what fails so often fails for ever. */
  failedImportsInARow: 3,
  importPauseFirstMs: 250,
  importPauseLongestMs: 10_000,
  /** Of a file whose name does not say what it is. */
  sniffedBytes: 65_536,
  /** Bad lines of one import that are kept for its JSON record. */
  badLinesKept: 1_000,
  /** A build of the console takes a few seconds; one that takes this long is stuck. */
  consoleBuildMs: 180_000,
  /** Lines of the console build's output that are kept to say why it failed. */
  consoleBuildLines: 50,
  /** Files that are looked at to see whether the console is older than its sources. */
  consoleSourceFiles: 5_000,
  /** Ways to tell the key from the property in one reference. */
  readings: 12,
  /** Conversations among which one is found by its title. */
  conversationsLooked: 1_000,
  /** Backtests among which one is found by the end of its id, and those that are shown side by side. */
  backtestsLooked: 200,
  comparedBacktests: 10,
  /** Requests that one command has under way at once. */
  requestsAtOnce: 4,
  /** Agent files that one `agents apply` reads. */
  agentFiles: 1_000,
  agentFileBytes: 1024 * 1024,
  /** Lines of a long text that are shown of what was, and of what is. */
  differenceLines: 20,
  /** Of an agent that is asked something: the newest runs, which are known before it answers. */
  chatRuns: 50,
  /** How long the log may say nothing before it is asked whether the run broke without a word. */
  chatSilenceMs: 1_000,
  /** Lines that are typed ahead of the agent. */
  typedAhead: 1_000,
  /** Two signals that come so soon are one press of the key. */
  sameInterruptMs: 100,
  /** How long the doctor waits for one answer. */
  doctorAnswerMs: 5_000,
  /** Projects that the doctor looks at, the newest. */
  projectsExamined: 50,
  /** Room on the disk below which it warns, and below which nothing should be started. */
  diskWarnBytes: 2 * 1024 ** 3,
  diskFaultBytes: 256 * 1024 ** 2,
  leastFileHandles: 1_024,
  /** How far two clocks may be apart before leases and schedules suffer. */
  clockSkewMs: 2_000,
  /** Whether somebody has signed in to a server is looked at this often, as long as the link is good: ten minutes. */
  signInPollMs: 1_000,
  signInLooks: 610,
  /** How long a clean stop may take before the process ends without it: more than notice, requests, calls and runs may in turn. */
  stopMs: 30_000
} as const

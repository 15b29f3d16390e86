/**
 * The signs of a project in which nothing is wrong, for tests that then change one.
 */
import type { VitalSigns } from "../src/vital-signs.ts"

const none = { count: 0, oldestSeconds: 0 }

export const wellSigns: VitalSigns = {
  serverFault: null,
  stopped: null,
  untold: none,
  waitingEntries: 0,
  queued: none,
  running: 0,
  orphaned: none,
  overdue: none,
  resting: 0,
  pendingTasks: 0,
  enabledAgents: 1,
  disabledCount: 0,
  disabled: [],
  atRest: [],
  failing: [],
  voiceless: [],
  outages: [],
  crowded: [],
  deadLetters: [],
  mcpServers: 0,
  silentServers: [],
  changedServers: []
}

/**
 * Every bound of the door for OpenAI's clients, with its unit in its name.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 */
export const openAiLimits = {
  /** A whole answer is waited for so long: a client that waits in vain for 300 seconds would send its request again, and the agent would work twice. */
  waitMs: 240_000,
  /** The same for one that comes as it is made. */
  streamWaitMs: 900_000,
  /** Between two signs of life of a stream: Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000,
  /** Projects whose addresses a token is told that reaches several, the newest. */
  toldProjects: 20,
  /** Agents that are listed as models, the newest. */
  listedModels: 1_000,
  /** Agents of one read of that list. */
  pageModels: 200
} as const

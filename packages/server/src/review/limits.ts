/**
 * Every bound of what waits for people, units in their names; how much one may take back stands in `domain/undo.ts`.
 *
 */

/** Of `task/`: what waits for people; undos have theirs in `task/undo-limits.ts`. */
export const taskLimits = {
  /** Of a question's title; the whole question is its payload. */
  titleMaxChars: 120,
  /** Questions of one run that wait for an answer at once. */
  openQuestionsPerRun: 10,
  /** Of the newest waiting tasks of an agent, among which a question that a client brings is looked for. */
  questionsLookedThrough: 500,
  /** Review records, and promotions, of one agent version that are shown. */
  autonomyShown: 500,
  /** Of what is listed in a sentence that says why an answer was not taken. */
  listedMaxChars: 400
} as const

/** Of suggestions: how often waits are ended, and how much a run hears of what people said. */
export const reviewLimits = {
  /** From one sweep for suggestions whose time is up to the next. */
  expiryIntervalMs: 5_000,
  /** Suggestions of one project that one sweep lets expire. */
  expiryBatchTasks: 500,
  /** Suggestions of one agent that are rejected in one go: as many as may wait. */
  rejectedAtOnce: 10_000,
  /** Rejections that a run hears of. */
  rejectionsHeard: 5,
  /** Of each text in them. */
  heardTextMaxChars: 500
} as const

/** Of todos. */
export const todoLimits = {
  /** Of one person in one project, not done. */
  openPerOwner: 1_000,
  /** Of one list that a model reads, the newest of more. */
  listMaxItems: 500
} as const

/** Of undos. */
export const undoLimits = {
  /** Entities whose past is read in one question. */
  factsEntities: 200,
  /** Items whose values are held at once while they are put back. */
  valuesItems: 50,
  /** Items that a sentence names which says why an undo was not done. */
  itemsTold: 20
} as const
